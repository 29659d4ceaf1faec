#!lua flags=allow-oom
-- unsubscribe from one topic. What is queued stays queued.
-- One script, because both sides of a subscription must agree.
--
-- KEYS[1] hash   routes
-- KEYS[2] zset   routes:changes
-- KEYS[3] hash   subscriber:{name}
-- KEYS[4] set    topics:{subscriber}
-- KEYS[5] set    subscribers:{topic}
-- ARGV[1] string version of the caller's routing table
-- ARGV[2] string subscriber
-- ARGV[3] string topic
-- ARGV[4] bytes  the topics that its patterns no longer catch, with this one
-- Returns int    1 left, 0 was not subscribed, -1 stale

--@include lists
--@include routes

if is_stale(KEYS[1], ARGV[1]) then
  return -1
end
if redis.call('SISMEMBER', KEYS[4], ARGV[3]) == 0 then
  return 0
end
must_be('zset', KEYS[2])
must_be('hash', KEYS[3])
must_be('set', KEYS[5])
redis.call('SREM', KEYS[4], ARGV[3])
redis.call('SREM', KEYS[5], ARGV[2])
redis.call('HSET', KEYS[3], 'except', ARGV[4])
bump(KEYS[1], KEYS[2], { 's:' .. ARGV[2], 't:' .. ARGV[3] })
return 1
