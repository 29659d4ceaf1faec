#!lua flags=allow-oom
-- open -> open, or over: a request came with a session.
-- One script, because a session that ends between the look and the note must not live again.
-- allow-oom: like opening one.
--
-- KEYS[1] hash   sessions   digest of the session's id -> opened, last seen, digest of the token
-- ARGV[1] string digest of the session's id
-- ARGV[2] int    now, ms; '' for the server's clock
-- ARGV[3] int    how long a session lasts at most, ms
-- ARGV[4] int    how long without a request, ms
-- ARGV[5] int    noted again after, ms: a page that refreshes itself would write all the time
-- Returns string digest of the token, '' when there is no such session

--@include clock
--@include lists
--@include sessions

local now = clock_ms(ARGV[2])
local life, idle = whole(ARGV[3], 'life'), whole(ARGV[4], 'idle')
local step = whole(ARGV[5], 'step')
must_be('hash', KEYS[1])
local row = redis.call('HGET', KEYS[1], ARGV[1])
if not row then
  return ''
end
if is_over(row, now, life, idle) then
  redis.call('HDEL', KEYS[1], ARGV[1])
  return ''
end
local opened, seen, token = session_of(row)
if now >= seen + step then
  redis.call('HSET', KEYS[1], ARGV[1], digits(opened) .. ' ' .. digits(now) .. ' ' .. token)
end
return token
