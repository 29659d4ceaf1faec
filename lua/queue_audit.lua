#!lua flags=allow-oom
-- Find and repair what should not be, for a queue: an index entry whose job is in no state, or
-- whose lane is gone.
-- One script, because a job that is moving between states is only missing if looked at twice.
--
-- KEYS[1] hash   jobs:index:{queue}
-- KEYS[2] zset   jobs:scheduled:{queue}
-- KEYS[3] list   jobs:instant:{queue}
-- KEYS[4] zset   jobs:pending:{queue}
-- KEYS[5] hash   jobs:leases:{queue}
-- KEYS[6] hash   jobs:quarantine:{queue}
-- KEYS[7] hash   jobs:reclaims:{queue}
-- KEYS[8] prefix lane:{lane}
-- KEYS[9] prefix jobs:waiting:{subscriber}
-- ARGV[1] string cursor, '0' to begin
-- ARGV[2] int    about how many jobs to look at
-- ARGV[3] int    now, ms; '' for the server's clock
-- Returns array  {next cursor, '0' at the end, {what, job}, ...}

--@include clock
--@include lists
--@include lanes
--@include due
--@include placed

local k = { index = KEYS[1], scheduled = KEYS[2], instant = KEYS[3], pending = KEYS[4],
  leases = KEYS[5], quarantine = KEYS[6], reclaims = KEYS[7], waiting = KEYS[9] }
must_be('hash', k.index, k.leases, k.quarantine, k.reclaims)
must_be('zset', k.scheduled, k.pending)
must_be('list', k.instant)
local now = clock_ms(ARGV[3])
local page = redis.call('HSCAN', k.index, ARGV[1], 'COUNT', whole(ARGV[2], 'count'))
local reply = { page[1] }

for i = 2, #page[2], 2 do
  local subscriber = subscriber_of(page[2][i])
  if subscriber then
    must_be('list', k.waiting .. string.sub(subscriber, 2))
  end
end
for i = 1, #page[2], 2 do
  local job, state, lane_id = page[2][i], string.sub(page[2][i + 1], 1, 1), string.sub(page[2][i + 1], 2)
  if lane_id ~= '' and redis.call('EXISTS', KEYS[8] .. lane_id) == 0 then
    reply[#reply + 1] = { 'job without lane', job }
    leave_state(k, job, state, lane_id)
    redis.call('HDEL', k.index, job)
  elseif not is_there(k, job, state, lane_id) then
    reply[#reply + 1] = { 'job lost', job }
    leave_state(k, job, 'p', lane_id)
    redis.call('ZADD', k.scheduled, digits(now), job)
    redis.call('HSET', k.index, job, 's' .. lane_id)
  end
end
return reply
