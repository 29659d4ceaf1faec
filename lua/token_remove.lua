#!lua flags=allow-oom
-- A token is revoked; from this version on it opens nothing.
-- One script, because a token removed and not announced would live on in web processes.
--
-- KEYS[1] hash   routes
-- KEYS[2] zset   routes:changes
-- KEYS[3] hash   api_tokens
-- ARGV[1] string digest
-- Returns int    1, or 0 when there is no such token

--@include lists
--@include routes

must_be('hash', KEYS[1])
must_be('zset', KEYS[2])
if redis.call('HDEL', KEYS[3], ARGV[1]) == 0 then
  return 0
end
bump(KEYS[1], KEYS[2], { 'k:' .. ARGV[1] })
return 1
