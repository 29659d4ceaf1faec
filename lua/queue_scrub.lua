#!lua flags=allow-oom
-- pending -> instant: jobs whose lease has run out go back to the head of the line.
-- One script, because a lease read as expired and moved later may have been renewed in between.
-- A job whose workers keep dying goes aside, with its reason, and stops nobody.
--
-- KEYS[1] zset   jobs:pending:{queue}
-- KEYS[2] hash   jobs:leases:{queue}
-- KEYS[3] hash   jobs:reclaims:{queue}     job -> times its lease expired
-- KEYS[4] hash   jobs:index:{queue}
-- KEYS[5] list   jobs:instant:{queue}
-- KEYS[6] hash   jobs:quarantine:{queue}   job -> when and why
-- KEYS[7] hash   jobs:active
-- KEYS[8] prefix jobs:waiting:{subscriber}
-- KEYS[9] prefix subscriber:{name}
-- ARGV[1] int    now, ms; '' for the server's clock
-- ARGV[2] int    most jobs to move
-- ARGV[3] int    expired leases after which a job is quarantined; 0 for never
-- ARGV[4] string channel that wakes dispatchers
-- Returns array  {moved back, quarantined}

--@include clock
--@include lists
--@include lanes
--@include due

local k = { pending = KEYS[1], leases = KEYS[2], reclaims = KEYS[3], index = KEYS[4],
  instant = KEYS[5], active = KEYS[7], waiting = KEYS[8], subscriber = KEYS[9] }
local now = clock_ms(ARGV[1])
local most = whole(ARGV[2], 'most jobs')
local limit = whole(ARGV[3], 'limit')
check_queue(k)
must_be('hash', KEYS[6])

local moved, quarantined = 0, 0
local expired = redis.call('ZRANGE', k.pending, '-inf', digits(now), 'BYSCORE', 'LIMIT', 0, most)
local lanes = {}
for i = 1, #expired do
  lanes[i] = string.sub(redis.call('HGET', k.index, expired[i]) or 'p', 2)
  if lanes[i] ~= '' then
    check_subscriber(k, subscriber_of(lanes[i]))
  end
end
-- Backwards, so that the one that expired first stands at the very head.
for i = #expired, 1, -1 do
  local job, lane_id = expired[i], lanes[i]
  local lease = redis.call('HGET', k.leases, job) or '0 ? ?'
  local reclaims = (tonumber(redis.call('HGET', k.reclaims, job)) or 0) + 1
  redis.call('HSET', k.reclaims, job, reclaims)
  redis.call('ZREM', k.pending, job)
  redis.call('HDEL', k.leases, job)
  if limit > 0 and reclaims >= limit then
    local worker = string.match(lease, ' (%S+) ') or '?'
    local reason = 'its lease expired ' .. reclaims .. ' times, last with worker ' .. worker
    redis.call('HSET', KEYS[6], job, cmsgpack.pack({ digits(now), reason }))
    redis.call('HSET', k.index, job, 'q' .. lane_id)
    redis.call('HDEL', k.reclaims, job)
    quarantined = quarantined + 1
    if lane_id ~= '' then
      release(k, subscriber_of(lane_id))
    end
  else
    redis.call('LPUSH', k.instant, job)
    redis.call('HSET', k.index, job, 'i' .. lane_id)
    moved = moved + 1
  end
end
if moved > 0 then
  redis.call('PUBLISH', ARGV[4], digits(now))
end
return { moved, quarantined }
