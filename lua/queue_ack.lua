#!lua flags=allow-oom
-- pending -> deleted, or to the tail while the lane has more: the job is done.
-- One script, because a batch removed with its job left behind (or the reverse) is a lane that
-- nobody serves, or that is served twice.
--
-- KEYS[1]  zset   jobs:pending:{queue}
-- KEYS[2]  hash   jobs:leases:{queue}
-- KEYS[3]  hash   jobs:reclaims:{queue}    job -> times its lease expired
-- KEYS[4]  hash   jobs:index:{queue}
-- KEYS[5]  zset   jobs:scheduled:{queue}
-- KEYS[6]  list   jobs:instant:{queue}
-- KEYS[7]  hash   jobs:active
-- KEYS[8]  hash   batches:gauges:event
-- KEYS[9]  hash   batches:gauges:batch
-- KEYS[10] hash   counters
-- KEYS[11] prefix jobs:waiting:{subscriber}
-- KEYS[12] prefix subscriber:{name}        hash: sent, health_points, last_attempted_at, failures
-- KEYS[13] prefix lane:{lane}              hash: cur, dropped, told
-- KEYS[14] prefix batches:lane:{lane}
-- KEYS[15] prefix batch:{bid}
-- KEYS[16] prefix lanes:{subscriber}
-- KEYS[17] prefix operations:{subscriber}
-- KEYS[18] stream attempts
-- ARGV[1]  bytes  job
-- ARGV[2]  string fence
-- ARGV[3]  string batch id that was delivered; '' for a job without a lane
-- ARGV[4]  int    now, ms; '' for the server's clock
-- ARGV[5]  int    health points to add
-- ARGV[6]  string channel that wakes dispatchers
-- ARGV[7]  bytes  the attempt, for the history; '' when there was none
-- ARGV[8]  bytes  the attempt, for the stream; '' while nobody exports
-- ARGV[9]  string the attempt's outcome
-- ARGV[10] int    ms the attempt took
-- ARGV[11] int    rows of history to keep
-- ARGV[12] int    rows of the stream to keep
-- Returns  array  {1, ms of the lane's next due time or ''} | {0} when the lease is lost

--@include clock
--@include lists
--@include lanes
--@include leases
--@include due
--@include settle
--@include health
--@include attempts
--@include untold

local k = { pending = KEYS[1], leases = KEYS[2], reclaims = KEYS[3], index = KEYS[4],
  scheduled = KEYS[5], instant = KEYS[6], active = KEYS[7], waiting = KEYS[11],
  subscriber = KEYS[12], lane = KEYS[13], batches = KEYS[14], batch = KEYS[15], lanes = KEYS[16] }
local job, bid = ARGV[1], ARGV[3]
local now = clock_ms(ARGV[4])
local points = whole(ARGV[5], 'health points')
local attempt = attempt_of(ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11], ARGV[12])

if not holds(k.leases, job, ARGV[2]) then
  return { 0 }
end
local lane_id = string.sub(redis.call('HGET', k.index, job) or 'p', 2)
check_queue(k)
if lane_id == '' then
  leave_state(k, job, 'p', '')
  redis.call('HDEL', k.index, job)
  return { 1, '' }
end

-- Reading refuses a wrong type as well.
local subscriber = subscriber_of(lane_id)
local head = redis.call('LINDEX', k.batches .. lane_id, 0)
local told = tonumber(redis.call('HGET', k.lane .. lane_id, 'told'))
local gauge_events = tonumber(redis.call('HGET', KEYS[8], subscriber)) or 0
local gauge_batches = tonumber(redis.call('HGET', KEYS[9], subscriber)) or 0
must_be('zset', k.scheduled, k.lanes .. subscriber)
check_subscriber(k, subscriber)
check_attempt(attempt, KEYS[17] .. subscriber, KEYS[18], KEYS[10])

-- The audit forgets a batch that vanished, also while it is held: then there is nothing to remove.
local count, events = {}, 0
if head == bid then
  events = batch_events(k.batch .. head)
  local created = events > 0 and tonumber(redis.call('LINDEX', k.batch .. head, 1)) or now
  if events > 0 and told then -- else nothing was sent
    forget_told(k.lane .. lane_id, told)
  end
  redis.call('LPOP', k.batches .. lane_id)
  redis.call('UNLINK', k.batch .. head)
  redis.call('HSET', KEYS[8], subscriber, digits(gauge_events - events))
  redis.call('HSET', KEYS[9], subscriber, digits(gauge_batches - 1))
  count['events.delivered,subscriber=' .. subscriber] = events
  count['delivery.latency,subscriber=' .. subscriber] = math.max(0, now - created)
end
attempted(k.subscriber .. subscriber, points, now, false, events)
add_to_fields(KEYS[10], note_attempt(attempt, KEYS[17] .. subscriber, KEYS[18], count, subscriber))
leave_state(k, job, 'p', lane_id)
local due = settle(k, job, lane_id, now)
if due then
  redis.call('PUBLISH', ARGV[6], digits(due))
end
return { 1, due and digits(due) or '' }
