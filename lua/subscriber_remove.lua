#!lua flags=allow-oom
-- unsubscribe: the subscriber, its lanes, jobs and gauges are gone in one step.
-- One script, because anything left behind could be delivered after goodbye, or to a later
-- subscription of the same name. The batches' bytes are only unhooked here and put on the
-- trash, so that a long backlog does not hold Redis up; batches_sweep frees them in steps.
--
-- KEYS[1]  hash   routes
-- KEYS[2]  zset   routes:changes
-- KEYS[3]  set    subscribers
-- KEYS[4]  hash   subscriber:{name}
-- KEYS[5]  set    topics:{subscriber}
-- KEYS[6]  zset   lanes:{subscriber}
-- KEYS[7]  list   jobs:waiting:{subscriber}
-- KEYS[8]  list   drops:{subscriber}
-- KEYS[9]  hash   jobs:index:main
-- KEYS[10] zset   jobs:scheduled:main
-- KEYS[11] list   jobs:instant:main
-- KEYS[12] zset   jobs:pending:main
-- KEYS[13] hash   jobs:leases:main
-- KEYS[14] hash   jobs:reclaims:main
-- KEYS[15] hash   jobs:quarantine:main
-- KEYS[16] hash   jobs:active
-- KEYS[17] hash   batches:gauges:event
-- KEYS[18] hash   batches:gauges:batch
-- KEYS[19] hash   counters
-- KEYS[20] list   trash                    names of lists of batch ids
-- KEYS[21] prefix lane:{lane}
-- KEYS[22] prefix batches:lane:{lane}
-- KEYS[23] prefix subscribers:{topic}
-- KEYS[24] prefix trash:{uid}
-- KEYS[25] list   operations:{subscriber}
-- ARGV[1]  string subscriber
-- ARGV[2]  string unique id of this call
-- ARGV[3]  string channel that wakes dispatchers
-- Returns  int    1, or 0 when there is no such subscriber

--@include lists
--@include lanes
--@include due
--@include routes

local k = { index = KEYS[9], scheduled = KEYS[10], instant = KEYS[11], pending = KEYS[12],
  leases = KEYS[13], reclaims = KEYS[14], quarantine = KEYS[15], active = KEYS[16] }
local name = ARGV[1]
if redis.call('SISMEMBER', KEYS[3], name) == 0 then
  return 0
end
must_be('hash', KEYS[1], KEYS[17], KEYS[18], KEYS[19], k.quarantine)
must_be('zset', KEYS[2], k.scheduled)
must_be('list', KEYS[20])
check_queue(k)
local lanes = redis.call('ZRANGE', KEYS[6], 0, -1)
local topics = redis.call('SMEMBERS', KEYS[5])
for i = 1, #topics do
  must_be('set', KEYS[23] .. topics[i])
end

local changed = { 's:' .. name }
for i = 1, #topics do
  redis.call('SREM', KEYS[23] .. topics[i], name)
  changed[#changed + 1] = 't:' .. topics[i]
end

redis.call('DEL', KEYS[7]) -- first: then no job has to be looked for in it
for i = 1, #lanes do
  local lane_id = name .. '|' .. lanes[i]
  local job = deliver_job(lane_id)
  local state = string.sub(redis.call('HGET', k.index, job) or ' ', 1, 1)
  leave_state(k, job, state ~= 'w' and state or ' ', lane_id)
  redis.call('HDEL', k.index, job)
  redis.call('DEL', KEYS[21] .. lane_id)
  if redis.call('EXISTS', KEYS[22] .. lane_id) == 1 then
    local trash = ARGV[2] .. i
    redis.call('RENAME', KEYS[22] .. lane_id, KEYS[24] .. trash)
    redis.call('RPUSH', KEYS[20], trash)
  end
end

local queued = tonumber(redis.call('HGET', KEYS[17], name)) or 0
if queued > 0 then
  add_to_fields(KEYS[19], { ['events.dropped,reason=unsubscribed,subscriber=' .. name] = queued })
end
redis.call('HDEL', KEYS[16], name)
redis.call('HDEL', KEYS[17], name)
redis.call('HDEL', KEYS[18], name)
redis.call('SREM', KEYS[3], name)
redis.call('DEL', KEYS[4], KEYS[5], KEYS[6], KEYS[8], KEYS[25])
bump(KEYS[1], KEYS[2], changed)
tell_changed(ARGV[3], name)
return 1
