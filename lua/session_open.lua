#!lua flags=allow-oom
-- (none) -> open: somebody signed in to the dashboard.
-- One script, because the number of sessions is bounded: making room and moving in are one step.
-- allow-oom: a full bus is what an operator signs in to look at, and the hash is bounded.
--
-- KEYS[1] hash   sessions   digest of the session's id -> opened, last seen, digest of the token
-- ARGV[1] string digest of the session's id
-- ARGV[2] string digest of the token
-- ARGV[3] int    now, ms; '' for the server's clock
-- ARGV[4] int    how long a session lasts at most, ms
-- ARGV[5] int    how long without a request, ms
-- ARGV[6] int    sessions to keep, of 1 to 10,000
-- Returns int    how many there are

--@include clock
--@include lists
--@include sessions

local now = clock_ms(ARGV[3])
local life, idle, most = whole(ARGV[4], 'life'), whole(ARGV[5], 'idle'), whole(ARGV[6], 'most')
assert(most > 0 and most <= 10000, 'sessions to keep must be from 1 to 10,000')
assert(ARGV[1] ~= '' and string.match(ARGV[2], '^%S+$'), 'a session has an id and a token')
must_be('hash', KEYS[1])

local rows = redis.call('HGETALL', KEYS[1])
local open, over = {}, {}
for i = 1, #rows, 2 do
  local _, seen = session_of(rows[i + 1])
  if is_over(rows[i + 1], now, life, idle) then
    over[#over + 1] = rows[i]
  else
    open[#open + 1] = { seen, rows[i] }
  end
end
table.sort(open, function(a, b) return a[1] < b[1] end)
for i = 1, #open - most + 1 do
  over[#over + 1] = open[i][2]
end
redis.call('HSET', KEYS[1], ARGV[1], digits(now) .. ' ' .. digits(now) .. ' ' .. ARGV[2])
call_in_steps('HDEL', KEYS[1], over)
return redis.call('HLEN', KEYS[1])
