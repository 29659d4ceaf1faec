#!lua flags=allow-oom
-- ready | current -> deleted: give up a lane's oldest batches to free memory.
-- One script, because the subscriber must be told exactly what it will never get.
-- A batch that is being delivered stays: the ones behind it go.
--
-- KEYS[1]  hash   jobs:index:main
-- KEYS[2]  zset   jobs:scheduled:main
-- KEYS[3]  list   jobs:instant:main
-- KEYS[4]  zset   jobs:pending:main
-- KEYS[5]  hash   jobs:leases:main
-- KEYS[6]  hash   jobs:reclaims:main
-- KEYS[7]  hash   jobs:quarantine:main
-- KEYS[8]  hash   jobs:active
-- KEYS[9]  hash   batches:gauges:event
-- KEYS[10] hash   batches:gauges:batch
-- KEYS[11] hash   counters
-- KEYS[12] list   drops:{subscriber}       what was dropped, newest last
-- KEYS[13] prefix jobs:waiting:{subscriber}
-- KEYS[14] prefix subscriber:{name}
-- KEYS[15] prefix lane:{lane}              hash: cur, dropped, hold
-- KEYS[16] prefix batches:lane:{lane}
-- KEYS[17] prefix batch:{bid}
-- KEYS[18] prefix lanes:{subscriber}
-- KEYS[19] list   operations:{subscriber}
-- KEYS[20] stream dropped                  what was dropped, for the export
-- ARGV[1]  string lane
-- ARGV[2]  int    most batches to drop
-- ARGV[3]  string reason
-- ARGV[4]  int    now, ms; '' for the server's clock
-- ARGV[5]  int    most records of drops to keep
-- ARGV[6]  int    rows of history to keep
-- ARGV[7]  int    rows of the stream to keep; 0 while nobody exports
-- Returns  array  {batches, events} that are gone

--@include clock
--@include lists
--@include lanes
--@include due
--@include settle
--@include attempts
--@include untold

local k = { index = KEYS[1], scheduled = KEYS[2], instant = KEYS[3], pending = KEYS[4],
  leases = KEYS[5], reclaims = KEYS[6], quarantine = KEYS[7], active = KEYS[8],
  waiting = KEYS[13], subscriber = KEYS[14], lane = KEYS[15], batches = KEYS[16],
  batch = KEYS[17], lanes = KEYS[18] }
local lane_id, reason = ARGV[1], ARGV[3]
local most = whole(ARGV[2], 'most batches')
local now = clock_ms(ARGV[4])
local records = whole(ARGV[5], 'most records')
assert(records > 0, 'most records must be positive')
local history = whole(ARGV[6], 'rows of history')
assert(history > 0, 'rows of history must be positive')
local exported = whole(ARGV[7], 'rows of the stream')
local subscriber = assert(subscriber_of(lane_id), 'not a lane: ' .. lane_id)
local lane_name = string.sub(lane_id, #subscriber + 2)
local job = deliver_job(lane_id)
local state = string.sub(redis.call('HGET', k.index, job) or ' ', 1, 1)
must_be('hash', KEYS[9], KEYS[10], KEYS[11], k.quarantine, k.lane .. lane_id)
must_be('list', KEYS[12], KEYS[19], k.batches .. lane_id)
must_be('zset', k.scheduled, k.lanes .. subscriber)
if exported > 0 then
  must_be('stream', KEYS[20])
end
check_queue(k)
check_subscriber(k, subscriber)

local in_flight = state == 'p' and redis.call('LPOP', k.batches .. lane_id)
local bids = {}
if most > 0 then
  bids = redis.call('LPOP', k.batches .. lane_id, most) or {}
end
if in_flight then
  redis.call('LPUSH', k.batches .. lane_id, in_flight)
end
if #bids == 0 then
  return { 0, 0 }
end

-- Neighbours make one range; where events were dropped before, a range ends.
local ranges, events = {}, 0
local lane = redis.call('HMGET', k.lane .. lane_id, 'cur', 'seq')
for i = 1, #bids do
  local key = k.batch .. bids[i]
  local count = batch_events(key)
  if count > 0 then
    local first = tonumber(redis.call('LINDEX', key, 4)) or 0
    keep_history(KEYS[19], cmsgpack.pack({ lane_name, bids[i],
      tonumber(redis.call('LINDEX', key, 2)) or 0, count, 0,
      tonumber(redis.call('LINDEX', key, 1)) or 0, now, now, 'dropped', 0, reason, '', first, '' }),
      history)
    if exported > 0 then
      redis.call('XADD', KEYS[20], '*', 'd', cmsgpack.pack({ subscriber, lane_name, bids[i], count,
        first, first + count - 1, tonumber(redis.call('LINDEX', key, 1)) or 0, now, reason }))
    end
    local range = ranges[#ranges]
    if range and range.last + 1 == first then
      range.last = first + count - 1
    else
      ranges[#ranges + 1] = { first = first, last = first + count - 1 }
    end
  end
  if bids[i] == lane[1] then
    close_current(k.lane .. lane_id, tonumber(lane[2]) or 0, count)
  end
  events = events + count
  redis.call('UNLINK', key)
end
for i = 1, #ranges do
  redis.call('RPUSH', KEYS[12], cmsgpack.pack({ lane_name, digits(ranges[i].first),
    digits(ranges[i].last), reason, digits(now) }))
end
redis.call('LTRIM', KEYS[12], -records, -1)
add_untold(k.lane .. lane_id, ranges)
add_to_fields(KEYS[9], { [subscriber] = -events })
add_to_fields(KEYS[10], { [subscriber] = -#bids })
local count = { ['events.dropped,reason=' .. reason .. ',subscriber=' .. subscriber] = events }
if exported > 0 then
  cut_stream(KEYS[20], exported, 'drops', count)
end
add_to_fields(KEYS[11], count)

if state ~= 'p' then
  if redis.call('LLEN', k.batches .. lane_id) == 0 then
    leave_state(k, job, state, lane_id)
    redis.call('HDEL', k.index, job)
    redis.call('HDEL', k.lane .. lane_id, 'hold')
    rest(k, lane_id, now)
    if state == 'i' then
      release(k, subscriber)
    end
  else
    next_due(k, lane_id, now) -- only the lane's age: the job keeps its place
  end
end
return { #bids, events }
