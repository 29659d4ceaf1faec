#!lua flags=allow-oom
-- pending -> scheduled: the job is to be tried again later.
-- One script, because a job out of pending and not yet scheduled would be lost.
--
-- KEYS[1]  zset   jobs:pending:{queue}
-- KEYS[2]  hash   jobs:leases:{queue}
-- KEYS[3]  hash   jobs:reclaims:{queue}
-- KEYS[4]  hash   jobs:index:{queue}
-- KEYS[5]  zset   jobs:scheduled:{queue}
-- KEYS[6]  list   jobs:instant:{queue}
-- KEYS[7]  hash   jobs:active
-- KEYS[8]  prefix jobs:waiting:{subscriber}
-- KEYS[9]  prefix subscriber:{name}        hash: health_points, last_attempted_at, failures
-- KEYS[10] prefix lane:{lane}              hash: hold
-- KEYS[11] prefix batches:lane:{lane}
-- KEYS[12] prefix batch:{bid}              its attempts
-- KEYS[13] hash   counters
-- KEYS[14] prefix operations:{subscriber}
-- KEYS[15] stream attempts
-- ARGV[1]  bytes  job
-- ARGV[2]  string fence
-- ARGV[3]  int    now, ms; '' for the server's clock
-- ARGV[4]  int    wait, ms
-- ARGV[5]  int    health points to take away
-- ARGV[6]  int    1 when this was an attempt, 0 when the job was only handed back
-- ARGV[7]  string channel that wakes dispatchers
-- ARGV[8]  bytes  the attempt, for the history; '' when there was none
-- ARGV[9]  bytes  the attempt, for the stream; '' while nobody exports
-- ARGV[10] string the attempt's outcome; 'gone' disables the subscriber
-- ARGV[11] int    ms the attempt took
-- ARGV[12] int    rows of history to keep
-- ARGV[13] int    rows of the stream to keep
-- Returns  int    1, or 0 when the lease is lost

--@include clock
--@include lists
--@include lanes
--@include leases
--@include due
--@include health
--@include attempts

local k = { pending = KEYS[1], leases = KEYS[2], reclaims = KEYS[3], index = KEYS[4],
  scheduled = KEYS[5], instant = KEYS[6], active = KEYS[7], waiting = KEYS[8], subscriber = KEYS[9] }
local job = ARGV[1]
local now = clock_ms(ARGV[3])
local due = now + whole(ARGV[4], 'wait')
local points = whole(ARGV[5], 'health points')
local attempts = whole(ARGV[6], 'attempts')
local attempt = attempt_of(ARGV[8], ARGV[9], ARGV[10], ARGV[11], ARGV[12], ARGV[13])

if not holds(k.leases, job, ARGV[2]) then
  return 0
end
local lane_id = string.sub(redis.call('HGET', k.index, job) or 'p', 2)
local subscriber = subscriber_of(lane_id)
must_be('zset', k.scheduled)
check_queue(k)
if subscriber then
  check_subscriber(k, subscriber)
  must_be('hash', KEYS[10] .. lane_id)
  must_be('list', KEYS[11] .. lane_id)
  check_attempt(attempt, KEYS[14] .. subscriber, KEYS[15], KEYS[13])
end

leave_state(k, job, 'p', lane_id)
redis.call('ZADD', k.scheduled, digits(due), job)
redis.call('HSET', k.index, job, 's' .. lane_id)
if subscriber then
  if due > now then
    -- While it waits a batch that fills must not bring it forward.
    redis.call('HSET', KEYS[10] .. lane_id, 'hold', digits(due))
  end
  if attempts > 0 then
    local bid = redis.call('LINDEX', KEYS[11] .. lane_id, 0)
    local key = KEYS[12] .. (bid or '')
    if bid and batch_events(key) > 0 then
      redis.call('LSET', key, 2, (tonumber(redis.call('LINDEX', key, 2)) or 0) + attempts)
    end
    attempted(k.subscriber .. subscriber, -points, now, true)
  end
  add_to_fields(KEYS[13], note_attempt(attempt, KEYS[14] .. subscriber, KEYS[15], {}, subscriber))
  if attempt.outcome == 'gone' then
    -- Here and not in a call of its own: the lane must not be taken in between.
    redis.call('HSET', k.subscriber .. subscriber, 'state', 'disabled')
    tell_changed(ARGV[7], subscriber)
  end
  release(k, subscriber)
end
redis.call('PUBLISH', ARGV[7], digits(due))
return 1
