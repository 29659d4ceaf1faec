#!lua
-- (none) | unowned -> owned: the first publisher of a topic becomes its owner.
-- One script, because two publishers must not both find the topic free.
--
-- KEYS[1] hash   routes
-- KEYS[2] zset   routes:changes
-- KEYS[3] set    topics
-- KEYS[4] prefix topic:{name}           hash: publisher, created_at, counter
-- KEYS[5] prefix subscribers:{topic}
-- KEYS[6] prefix topics:{subscriber}
-- ARGV[1] string version of the caller's routing table
-- ARGV[2] string topic
-- ARGV[3] string publisher; '' creates the topic and leaves it unowned
-- ARGV[4] bytes  MessagePack: subscribers whose patterns catch the topic, when it is new
-- ARGV[5] int    now, ms; '' for the server's clock
-- Returns int    1 claimed, 0 owned already, -1 stale

--@include clock
--@include lists
--@include routes
--@include topics

local keys = { topics = KEYS[3], topic = KEYS[4], subscribers = KEYS[5], subscribed = KEYS[6] }
local topic, publisher = ARGV[2], ARGV[3]
if is_stale(KEYS[1], ARGV[1]) then
  return -1
end
local followers = strings(cmsgpack.unpack(ARGV[4]), 'followers')
local now = clock_ms(ARGV[5])
must_be('zset', KEYS[2])
must_be('set', keys.topics, keys.subscribers .. topic)
must_be('hash', keys.topic .. topic)
for i = 1, #followers do
  must_be('set', keys.subscribed .. followers[i])
end
if redis.call('HEXISTS', keys.topic .. topic, 'publisher') == 1 then
  return 0
end

local changed = { 't:' .. topic }
if redis.call('SISMEMBER', keys.topics, topic) == 0 then
  changed = create_topic(keys, topic, followers, now)
end
if publisher ~= '' then
  redis.call('HSET', keys.topic .. topic, 'publisher', publisher)
end
bump(KEYS[1], KEYS[2], changed)
return 1
