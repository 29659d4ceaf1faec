#!lua flags=allow-oom
-- scheduled | quarantined -> scheduled, due now: somebody asked for the lane's delivery.
-- One script, because a job out of its state and not yet in the next would be lost.
--
-- KEYS[1] hash   jobs:index:main
-- KEYS[2] zset   jobs:scheduled:main
-- KEYS[3] hash   jobs:quarantine:main
-- KEYS[4] hash   jobs:reclaims:main
-- KEYS[5] hash   lane:{lane}              hold
-- ARGV[1] string lane
-- ARGV[2] int    now, ms; '' for the server's clock
-- ARGV[3] string channel that wakes dispatchers
-- Returns string the job's state before: s, w, i, p or q; '' when the lane has no job

--@include clock
--@include lists
--@include lanes

local lane_id = ARGV[1]
assert(subscriber_of(lane_id), 'not a lane: ' .. lane_id)
local now = clock_ms(ARGV[2])
local job = deliver_job(lane_id)
must_be('hash', KEYS[1], KEYS[3], KEYS[4], KEYS[5])
must_be('zset', KEYS[2])
local state = string.sub(redis.call('HGET', KEYS[1], job) or '', 1, 1)
if state == 's' or state == 'q' then
  redis.call('HDEL', KEYS[3], job)
  redis.call('HDEL', KEYS[4], job)
  redis.call('HDEL', KEYS[5], 'hold')
  redis.call('ZADD', KEYS[2], digits(now), job)
  redis.call('HSET', KEYS[1], job, 's' .. lane_id)
  redis.call('PUBLISH', ARGV[3], digits(now))
end
return state
