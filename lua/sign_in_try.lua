#!lua flags=allow-oom
-- A try to sign in is counted before the token is looked at, so that tries at once all count.
-- One script, because the count and the beginning of its window belong together.
-- allow-oom: guessing must not become free when Redis is full; the hash has a bounded number of
-- fields, because the caller maps addresses to so many.
--
-- KEYS[1] hash   sign_ins   bucket of addresses -> beginning of the window, tries
-- ARGV[1] string bucket
-- ARGV[2] int    now, ms; '' for the server's clock
-- ARGV[3] int    the window, ms
-- ARGV[4] int    tries within it
-- Returns int    0 when this one may go on, else ms to wait

--@include clock
--@include lists

local now = clock_ms(ARGV[2])
local window, most = whole(ARGV[3], 'window'), whole(ARGV[4], 'tries')
must_be('hash', KEYS[1])
local since, tries = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^(%d+) (%d+)$')
since, tries = tonumber(since) or now, tonumber(tries) or 0
if since > now or now >= since + window then
  since, tries = now, 0
end
if tries >= most then
  return math.max(1, since + window - now)
end
redis.call('HSET', KEYS[1], ARGV[1], digits(since) .. ' ' .. digits(tries + 1))
return 0
