#!lua flags=allow-oom
-- pending -> pending: the holder needs longer.
-- One script, because a renewal that only checked the fence could revive a lease already given on.
--
-- KEYS[1] zset   jobs:pending:{queue}   job -> end of the lease, ms
-- KEYS[2] hash   jobs:leases:{queue}
-- ARGV[1] bytes  job
-- ARGV[2] string fence
-- ARGV[3] int    now, ms; '' for the server's clock
-- ARGV[4] int    length of the lease from now, ms
-- Returns int    1, or 0 when the lease is lost

--@include clock
--@include leases

local now = clock_ms(ARGV[3])
local lease_ms = whole(ARGV[4], 'lease')
if not holds(KEYS[2], ARGV[1], ARGV[2]) then
  return 0
end
redis.call('ZADD', KEYS[1], 'XX', digits(now + lease_ms), ARGV[1])
return 1
