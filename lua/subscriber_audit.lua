#!lua flags=allow-oom
-- Find and repair what should not be, for one subscriber: a lane with batches and no job, a
-- job that is not where the index says, a batch that vanished, a gauge that is not the truth.
-- One script, because any of these is only wrong if looked at in one moment.
--
-- KEYS[1]  hash   jobs:index:main
-- KEYS[2]  zset   jobs:scheduled:main
-- KEYS[3]  list   jobs:instant:main
-- KEYS[4]  zset   jobs:pending:main
-- KEYS[5]  hash   jobs:leases:main
-- KEYS[6]  hash   jobs:quarantine:main
-- KEYS[7]  hash   jobs:active
-- KEYS[8]  hash   batches:gauges:event
-- KEYS[9]  hash   batches:gauges:batch
-- KEYS[10] zset   lanes:{subscriber}
-- KEYS[11] prefix jobs:waiting:{subscriber}
-- KEYS[12] prefix lane:{lane}
-- KEYS[13] prefix batches:lane:{lane}
-- KEYS[14] prefix batch:{bid}
-- ARGV[1]  string subscriber
-- ARGV[2]  int    now, ms; '' for the server's clock
-- ARGV[3]  int    most batches to open; a longer backlog is left unchecked and says so
-- ARGV[4]  int    an empty lane idle for longer than this is forgotten, ms
-- Returns  array  findings: {what, lane}, ...

--@include clock
--@include lists
--@include lanes
--@include placed

local k = { index = KEYS[1], scheduled = KEYS[2], instant = KEYS[3], pending = KEYS[4],
  leases = KEYS[5], quarantine = KEYS[6], waiting = KEYS[11] }
local name = ARGV[1]
local now = clock_ms(ARGV[2])
local budget = whole(ARGV[3], 'most batches')
local idle_ms = whole(ARGV[4], 'idle ms')
local findings = {}
must_be('hash', k.index, k.leases, k.quarantine, KEYS[7], KEYS[8], KEYS[9])
must_be('zset', k.scheduled, k.pending)
must_be('list', k.instant, k.waiting .. name)

local function found(what, lane)
  findings[#findings + 1] = { what, lane }
end

-- Counts a lane's events; forgets the ids of batches that vanished.
local function count_events(lane_id, lane)
  local list = KEYS[13] .. lane_id
  local events, bids = 0, redis.call('LRANGE', list, 0, -1)
  for i = 1, #bids do
    local count = batch_events(KEYS[14] .. bids[i])
    if count == 0 then
      found('batch vanished', lane)
      redis.call('LREM', list, 1, bids[i])
      if redis.call('HGET', KEYS[12] .. lane_id, 'cur') == bids[i] then
        redis.call('HDEL', KEYS[12] .. lane_id, 'cur')
      end
    end
    events = events + count
  end
  budget = budget - #bids
  return events
end

local function place_job(job, lane_id, state, lane)
  if state and is_there(k, job, state, lane_id) then
    return state
  end
  found(state and 'job lost' or 'lane without job', lane)
  redis.call('ZREM', k.pending, job)
  redis.call('HDEL', k.leases, job)
  redis.call('ZADD', k.scheduled, digits(now), job)
  redis.call('HSET', k.index, job, 's' .. lane_id)
  return 's'
end

local function drop_job(job, lane)
  found('job without batches', lane)
  redis.call('ZREM', k.scheduled, job)
  redis.call('LREM', k.instant, 0, job)
  redis.call('LREM', k.waiting .. name, 0, job)
  redis.call('ZREM', k.pending, job)
  redis.call('HDEL', k.leases, job)
  redis.call('HDEL', k.quarantine, job)
  redis.call('HDEL', k.index, job)
end

local events, batches, active, checked = 0, 0, 0, true
local lanes = redis.call('ZRANGE', KEYS[10], 0, -1, 'WITHSCORES')
for i = 1, #lanes, 2 do
  must_be('hash', KEYS[12] .. name .. '|' .. lanes[i])
  must_be('list', KEYS[13] .. name .. '|' .. lanes[i])
end
for i = 1, #lanes, 2 do
  local lane = lanes[i]
  local lane_id = name .. '|' .. lane
  local job = deliver_job(lane_id)
  if redis.call('LLEN', KEYS[13] .. lane_id) > budget then
    checked = false
    found('too long to check', lane)
  elseif checked then
    events = events + count_events(lane_id, lane)
  end
  local queued = redis.call('LLEN', KEYS[13] .. lane_id)
  batches = batches + queued
  local known = redis.call('HGET', k.index, job)
  local state = known and string.sub(known, 1, 1)
  if queued > 0 then
    state = place_job(job, lane_id, state, lane)
  elseif state then
    drop_job(job, lane)
    state = nil
  elseif tonumber(lanes[i + 1]) < 0 and -tonumber(lanes[i + 1]) + idle_ms <= now then
    redis.call('ZREM', KEYS[10], lane)
    redis.call('DEL', KEYS[12] .. lane_id)
  end
  if state == 'i' or state == 'p' then
    active = active + 1
  end
end

local function correct(key, truth, what)
  if (tonumber(redis.call('HGET', key, name)) or 0) ~= truth then
    found(what, '')
    if truth == 0 then
      redis.call('HDEL', key, name)
    else
      redis.call('HSET', key, name, digits(truth))
    end
  end
end
if checked then
  correct(KEYS[8], events, 'event gauge wrong')
end
correct(KEYS[9], batches, 'batch gauge wrong')
correct(KEYS[7], active, 'active count wrong')
return findings
