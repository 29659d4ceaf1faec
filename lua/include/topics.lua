-- Creates a topic with the subscribers whose patterns catch it; no publisher yet.
-- keys  topics, topic, subscribers, subscribed (prefixes but for the first)
-- Returns what changed in the routing table.
local function create_topic(keys, topic, followers, now)
  local changed = { 't:' .. topic }
  redis.call('SADD', keys.topics, topic)
  redis.call('HSET', keys.topic .. topic, 'created_at', digits(now), 'counter', 0)
  for i = 1, #followers do
    redis.call('SADD', keys.subscribers .. topic, followers[i])
    redis.call('SADD', keys.subscribed .. followers[i], topic)
    changed[#changed + 1] = 's:' .. followers[i]
  end
  return changed
end
