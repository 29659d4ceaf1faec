#!lua flags=allow-oom
-- quarantined -> scheduled, due now: an operator gives a job another chance.
-- One script, because a job out of quarantine and not yet scheduled would be lost.
--
-- KEYS[1] hash   jobs:index:{queue}
-- KEYS[2] zset   jobs:scheduled:{queue}
-- KEYS[3] hash   jobs:quarantine:{queue}
-- KEYS[4] hash   jobs:reclaims:{queue}
-- ARGV[1] bytes  job
-- ARGV[2] int    now, ms; '' for the server's clock
-- ARGV[3] string channel that wakes dispatchers
-- Returns int    1, or 0 when it is not in quarantine

--@include clock
--@include lists

local job = ARGV[1]
local now = clock_ms(ARGV[2])
must_be('hash', KEYS[1], KEYS[3], KEYS[4])
must_be('zset', KEYS[2])
local known = redis.call('HGET', KEYS[1], job) or ''
if string.sub(known, 1, 1) ~= 'q' then
  return 0
end
redis.call('HDEL', KEYS[3], job)
redis.call('HDEL', KEYS[4], job)
redis.call('ZADD', KEYS[2], digits(now), job)
redis.call('HSET', KEYS[1], job, 's' .. string.sub(known, 2))
redis.call('PUBLISH', ARGV[3], digits(now))
return 1
