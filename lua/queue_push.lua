#!lua flags=allow-oom
-- (new) -> scheduled | instant: enqueue an auxiliary job, unless it is in the queue already.
-- One script, because a job in the index and in no state could never be queued again.
-- allow-oom: housekeeping must start when Redis is full, above all then.
--
-- KEYS[1] hash   jobs:index:{queue}       job -> state
-- KEYS[2] zset   jobs:scheduled:{queue}   job -> due, ms
-- KEYS[3] list   jobs:instant:{queue}
-- ARGV[1] bytes  job
-- ARGV[2] int    when to run it, ms; '' for at once
-- ARGV[3] string channel that wakes dispatchers
-- Returns int    1, or 0 when the queue had it already

--@include clock
--@include lists

local job = ARGV[1]
local run_at = ARGV[2] ~= '' and whole(ARGV[2], 'run at')
must_be('hash', KEYS[1])
must_be('zset', KEYS[2])
must_be('list', KEYS[3])
if redis.call('HEXISTS', KEYS[1], job) == 1 then
  return 0
end
if run_at then
  redis.call('ZADD', KEYS[2], digits(run_at), job)
  redis.call('HSET', KEYS[1], job, 's')
else
  redis.call('RPUSH', KEYS[3], job)
  redis.call('HSET', KEYS[1], job, 'i')
end
redis.call('PUBLISH', ARGV[3], run_at and digits(run_at) or '0')
return 1
