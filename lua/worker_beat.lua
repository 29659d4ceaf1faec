#!lua flags=allow-oom
-- A worker is alive.
-- One script, because the heartbeat is by the server's clock, and must be written to a full Redis.
--
-- KEYS[1] hash   workers   worker -> its last heartbeat, ms
-- ARGV[1] string worker
-- ARGV[2] int    now, ms; '' for the server's clock
-- Returns int    1

--@include clock

redis.call('HSET', KEYS[1], ARGV[1], digits(clock_ms(ARGV[2])))
return 1
