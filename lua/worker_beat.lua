#!lua flags=allow-oom
-- A worker is alive, and those that were not heard of for long are forgotten: who is killed
-- never signs off.
-- One script, because all is by the server's clock, and must be written to a full Redis.
--
-- KEYS[1] hash   workers   worker -> its last heartbeat, ms
-- ARGV[1] string worker
-- ARGV[2] int    now, ms; '' for the server's clock
-- ARGV[3] int    ms of silence after which a worker is forgotten
-- Returns int    how many were forgotten

--@include clock
--@include lists

local now = clock_ms(ARGV[2])
local silence = whole(ARGV[3], 'ms of silence')
must_be('hash', KEYS[1])
redis.call('HSET', KEYS[1], ARGV[1], digits(now))
local dead, beats = {}, redis.call('HGETALL', KEYS[1])
for i = 1, #beats, 2 do
  if (tonumber(beats[i + 1]) or 0) + silence < now then
    dead[#dead + 1] = beats[i]
  end
end
call_in_steps('HDEL', KEYS[1], dead)
return #dead
