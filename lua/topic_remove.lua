#!lua flags=allow-oom
-- owned | unowned -> (none): the topic is gone and its subscribers are unsubscribed from it.
-- One script, because a subscriber listed for a topic that does not exist could neither be
-- listed nor removed. What is queued stays queued.
--
-- KEYS[1] hash   routes
-- KEYS[2] zset   routes:changes
-- KEYS[3] set    topics
-- KEYS[4] hash   topic:{name}
-- KEYS[5] set    subscribers:{topic}
-- KEYS[6] prefix topics:{subscriber}
-- ARGV[1] string version of the caller's routing table
-- ARGV[2] string topic
-- Returns int    1 removed, 0 no such topic, -1 stale

--@include lists
--@include routes

if is_stale(KEYS[1], ARGV[1]) then
  return -1
end
local topic = ARGV[2]
if redis.call('SISMEMBER', KEYS[3], topic) == 0 then
  return 0
end
must_be('zset', KEYS[2])
must_be('set', KEYS[5])
local followers = redis.call('SMEMBERS', KEYS[5])
local changed = { 't:' .. topic }
for i = 1, #followers do
  must_be('set', KEYS[6] .. followers[i])
end
for i = 1, #followers do
  redis.call('SREM', KEYS[6] .. followers[i], topic)
  changed[#changed + 1] = 's:' .. followers[i]
end
redis.call('SREM', KEYS[3], topic)
redis.call('DEL', KEYS[4], KEYS[5])
bump(KEYS[1], KEYS[2], changed)
return 1
