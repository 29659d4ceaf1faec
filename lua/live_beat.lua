#!lua
-- quiet -> live: somebody follows a topic's stream, so publishing tells what it accepts.
-- One script, because the time is Redis' own: a web process's clock may be wrong.
--
-- KEYS[1] hash   routes    live: until when, ms
-- ARGV[1] int    now, ms; '' for the server's clock
-- ARGV[2] int    for how long, ms
-- Returns int    until when

--@include clock

local until_ms = clock_ms(ARGV[1]) + whole(ARGV[2], 'how long')
local before = tonumber(redis.call('HGET', KEYS[1], 'live')) or 0
if until_ms > before then
  redis.call('HSET', KEYS[1], 'live', digits(until_ms))
end
return math.max(until_ms, before)
