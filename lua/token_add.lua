#!lua
-- A client gets one more token.
-- One script, because web processes must see the token in the version that announces it.
--
-- KEYS[1] hash   routes
-- KEYS[2] zset   routes:changes
-- KEYS[3] hash   api_tokens      digest of a token -> record
-- ARGV[1] string digest
-- ARGV[2] bytes  record, MessagePack
-- Returns int    1, or 0 when the token exists

--@include lists
--@include routes

must_be('hash', KEYS[1])
must_be('zset', KEYS[2])
if redis.call('HSETNX', KEYS[3], ARGV[1], ARGV[2]) == 0 then
  return 0
end
bump(KEYS[1], KEYS[2], { 'k:' .. ARGV[1] })
return 1
