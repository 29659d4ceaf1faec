#!lua flags=allow-oom
-- secret -> previous secret: a new one signs, and the old one beside it for a while.
-- One script, because a delivery between two steps would miss the signature by the old one.
-- The secret that is there already changes nothing: a repeated call must not push out the one
-- that the subscriber still verifies with.
--
-- KEYS[1] hash   subscriber:{name}
-- ARGV[1] string new secret
-- ARGV[2] int    for how long the old one goes on signing, ms
-- ARGV[3] int    now, ms; '' for the server's clock
-- Returns int    1, or 0 when there is no such subscriber

--@include clock
--@include lists

local secret = ARGV[1]
local overlap_ms = whole(ARGV[2], 'overlap')
local now = clock_ms(ARGV[3])
assert(secret ~= '', 'a secret must not be empty')
must_be('hash', KEYS[1])
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
local old = redis.call('HGET', KEYS[1], 'secret')
if old == secret then
  return 1
end
redis.call('HSET', KEYS[1], 'secret', secret)
if old then
  redis.call('HSET', KEYS[1], 'previous_secret', old,
    'previous_secret_until', digits(now + overlap_ms))
end
return 1
