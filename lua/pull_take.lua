#!lua flags=allow-oom
-- waiting -> pending: a subscriber without callback takes its next lane's oldest batch.
-- One script, because a job popped and not yet leased would be lost with its web process.
--
-- KEYS[1]  zset   jobs:pending:main        job -> end of the lease, ms
-- KEYS[2]  hash   jobs:leases:main
-- KEYS[3]  hash   jobs:index:main
-- KEYS[4]  string jobs:fences              the last fence given
-- KEYS[5]  hash   jobs:active              subscriber -> lanes in instant or pending
-- KEYS[6]  hash   jobs:quarantine:main     job -> when and why
-- KEYS[7]  prefix jobs:waiting:{subscriber}
-- KEYS[8]  prefix subscriber:{name}
-- KEYS[9]  prefix lane:{lane}
-- KEYS[10] prefix batches:lane:{lane}
-- KEYS[11] prefix batch:{bid}
-- ARGV[1]  int    now, ms; '' for the server's clock
-- ARGV[2]  string subscriber
-- ARGV[3]  string lease id, made by the caller
-- ARGV[4]  int    length of the lease, ms
-- ARGV[5]  int    1 when this may repeat a call: what the lease id holds is given again, anew
-- Returns  array  {now, 'gone' | 'pushed' | 'none'} | {now, 'taken', end of the lease, {job, fence,
--                 bid, {header and events}, {callback, uuid, secret, previous secret, health points},
--                 numbers that were dropped and not told yet}}

--@include clock
--@include lists
--@include lanes
--@include load
--@include pulls

local k = { pending = KEYS[1], leases = KEYS[2], index = KEYS[3], active = KEYS[5],
  waiting = KEYS[7], subscriber = KEYS[8], lane = KEYS[9], batches = KEYS[10], batch = KEYS[11] }
local now = clock_ms(ARGV[1])
local name, lease_id = ARGV[2], ARGV[3]
local until_ms = digits(now + whole(ARGV[4], 'lease'))
assert(string.find(lease_id, '^[%w_-]+$'), 'a lease id is letters, digits, _ and -')
assert(string.find(name, '^[%w:_-]+$'), 'not a subscriber')
must_be('zset', k.pending)
must_be('hash', k.leases, k.index, k.active, KEYS[6], k.subscriber .. name)
must_be('list', k.waiting .. name)
whole(redis.call('GET', KEYS[4]) or 0, 'the last fence')

local config = redis.call('HMGET', k.subscriber .. name, 'concurrency', 'state', 'callback')
if not config[1] then
  return { digits(now), 'gone' }
end
local active = tonumber(redis.call('HGET', k.active, name)) or 0

local function is_sound(lane_id)
  return subscriber_of(lane_id) == name and is_a('hash', k.lane .. lane_id)
    and is_a('list', k.batches .. lane_id)
end

local function give(job, fence, lane_id)
  local bid, items, dropped = open_batch(k, lane_id)
  local bytes = 0
  for i = HEADER + 1, #items do
    bytes = bytes + #items[i] + 1
  end
  -- With both brackets and a comma between each two.
  redis.call('HSET', k.leases, job, pull_lease(fence, name, lease_id, now, bytes + 1))
  redis.call('ZADD', k.pending, until_ms, job)
  local receiver = receiver_of(k, name, now)
  return { digits(now), 'taken', until_ms, { job, fence, bid, items, receiver, dropped } }
end

if ARGV[5] == '1' and active > 0 then
  local held = redis.call('ZRANGE', k.pending, 0, -1)
  for i = 1, #held do
    local lane_id = string.sub(redis.call('HGET', k.index, held[i]) or '', 2)
    local lease = subscriber_of(lane_id) == name and parse_pull(redis.call('HGET', k.leases, held[i]))
    if lease and lease.id == lease_id and is_sound(lane_id) then
      return give(held[i], lease.fence, lane_id)
    end
  end
end

if config[3] ~= '' then
  return { digits(now), 'pushed' }
end
local slots = (config[2] or 'active') == 'active' and tonumber(config[1]) or 0
while active < slots do
  local job = redis.call('LPOP', k.waiting .. name)
  if not job then
    break
  end
  local lane_id = string.sub(redis.call('HGET', k.index, job) or '', 2)
  if is_sound(lane_id) then
    redis.call('HSET', k.active, name, active + 1)
    redis.call('HSET', k.index, job, 'p' .. lane_id)
    return give(job, digits(redis.call('INCR', KEYS[4])), lane_id)
  elseif lane_id ~= '' then -- a job that the index does not know is nobody's: dropped
    redis.call('HSET', KEYS[6], job, cmsgpack.pack({ digits(now), 'a key of the lane has a wrong type' }))
    redis.call('HSET', k.index, job, 'q' .. lane_id)
  end
end
return { digits(now), 'none' }
