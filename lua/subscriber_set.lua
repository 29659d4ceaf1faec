#!lua
-- subscribe: replace a subscriber's settings and topics; its queue, health and history stay.
-- One that was disabled (it had answered 410) is active again; one that is paused stays so.
-- One script, because two calls at once must not leave a mixture of both.
--
-- KEYS[1]  hash   routes
-- KEYS[2]  zset   routes:changes
-- KEYS[3]  set    topics
-- KEYS[4]  set    subscribers
-- KEYS[5]  hash   subscriber:{name}
-- KEYS[6]  set    topics:{subscriber}
-- KEYS[7]  hash   jobs:index:main
-- KEYS[8]  list   jobs:instant:main
-- KEYS[9]  hash   jobs:active
-- KEYS[10] prefix topic:{name}
-- KEYS[11] prefix subscribers:{topic}
-- KEYS[12] prefix topics:{subscriber}
-- KEYS[13] prefix jobs:waiting:{subscriber}
-- KEYS[14] prefix subscriber:{name}
-- ARGV[1]  string version of the caller's routing table
-- ARGV[2]  string subscriber
-- ARGV[3]  bytes  MessagePack: [field, value, ...] to set
-- ARGV[4]  bytes  MessagePack: [field, value, ...] to set when the subscriber is new
-- ARGV[5]  bytes  MessagePack: all its topics
-- ARGV[6]  bytes  MessagePack: [[new topic, [other subscribers whose patterns catch it]], ...]
-- ARGV[7]  int    now, ms; '' for the server's clock
-- ARGV[8]  string channel that wakes dispatchers
-- Returns  int    1, or -1 stale

--@include clock
--@include lists
--@include lanes
--@include due
--@include routes
--@include topics

if is_stale(KEYS[1], ARGV[1]) then
  return -1
end
local k = { index = KEYS[7], instant = KEYS[8], active = KEYS[9], waiting = KEYS[13], subscriber = KEYS[14] }
local keys = { topics = KEYS[3], topic = KEYS[10], subscribers = KEYS[11], subscribed = KEYS[12] }
local name = ARGV[2]
local fields = strings(cmsgpack.unpack(ARGV[3]), 'fields')
local first_fields = strings(cmsgpack.unpack(ARGV[4]), 'first fields')
local wanted, created = strings(cmsgpack.unpack(ARGV[5]), 'topics'), cmsgpack.unpack(ARGV[6])
local now = clock_ms(ARGV[7])
assert(#fields > 0 and #fields % 2 == 0, 'fields come in pairs')
assert(#first_fields > 0 and #first_fields % 2 == 0, 'first fields come in pairs')
assert(type(created) == 'table', 'new topics must be a list')
must_be('zset', KEYS[2])
must_be('set', KEYS[3], KEYS[4], KEYS[6])
check_queue(k)
check_subscriber(k, name)
local before = redis.call('SMEMBERS', KEYS[6])
for i = 1, #wanted do
  must_be('set', keys.subscribers .. wanted[i])
end
for i = 1, #before do
  must_be('set', keys.subscribers .. before[i])
end
for i = 1, #created do
  local topic, followers = unpack(created[i], 1, 2)
  must_be('hash', keys.topic .. topic)
  must_be('set', keys.subscribers .. topic)
  for j = 1, #strings(followers, 'followers') do
    must_be('set', keys.subscribed .. followers[j])
  end
end

local changed = { 's:' .. name }
for i = 1, #created do
  local made = create_topic(keys, created[i][1], created[i][2], now)
  for j = 1, #made do
    changed[#changed + 1] = made[j]
  end
end
local is_wanted = {}
for i = 1, #wanted do
  is_wanted[wanted[i]] = true
  if redis.call('SADD', keys.subscribers .. wanted[i], name) == 1 then
    changed[#changed + 1] = 't:' .. wanted[i]
  end
end
for i = 1, #before do
  if not is_wanted[before[i]] then
    redis.call('SREM', keys.subscribers .. before[i], name)
    changed[#changed + 1] = 't:' .. before[i]
  end
end
redis.call('DEL', KEYS[6])
call_in_steps('SADD', KEYS[6], wanted)

if redis.call('SADD', KEYS[4], name) == 1 then
  redis.call('HSET', KEYS[5], unpack(first_fields))
end
redis.call('HSET', KEYS[5], unpack(fields))
if redis.call('HGET', KEYS[5], 'state') == 'disabled' then
  redis.call('HSET', KEYS[5], 'state', 'active')
end
admit(k, name, 0) -- more concurrency, or being active again, lets more of its lanes in
bump(KEYS[1], KEYS[2], changed)
tell_changed(ARGV[8], name)
redis.call('PUBLISH', ARGV[8], digits(now))
return 1
