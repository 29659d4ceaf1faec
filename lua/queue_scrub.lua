#!lua flags=allow-oom
-- pending -> instant: jobs whose lease has run out go back to the head of the line; one that was
-- pulled to the head of its subscriber's own, and that was a failed attempt.
-- One script, because a lease read as expired and moved later may have been renewed in between.
-- A job whose workers keep dying goes aside, with its reason, and stops nobody.
--
-- KEYS[1]  zset   jobs:pending:{queue}
-- KEYS[2]  hash   jobs:leases:{queue}
-- KEYS[3]  hash   jobs:reclaims:{queue}     job -> times its lease expired
-- KEYS[4]  hash   jobs:index:{queue}
-- KEYS[5]  list   jobs:instant:{queue}
-- KEYS[6]  hash   jobs:quarantine:{queue}   job -> when and why
-- KEYS[7]  hash   jobs:active
-- KEYS[8]  prefix jobs:waiting:{subscriber}
-- KEYS[9]  prefix subscriber:{name}        hash: health_points, last_attempted_at
-- KEYS[10] prefix batches:lane:{lane}
-- KEYS[11] prefix batch:{bid}              its attempts
-- KEYS[12] hash   counters
-- KEYS[13] prefix operations:{subscriber}
-- KEYS[14] stream attempts
-- ARGV[1]  int    now, ms; '' for the server's clock
-- ARGV[2]  int    most jobs to move
-- ARGV[3]  int    expired leases after which a job is quarantined; 0 for never
-- ARGV[4]  string channel that wakes dispatchers
-- ARGV[5]  int    health points that a pulled lease costs when it expires
-- ARGV[6]  int    rows of history to keep
-- ARGV[7]  int    rows of the stream to keep; 0 while nobody exports
-- Returns  array  {moved back, quarantined}

--@include clock
--@include lists
--@include lanes
--@include due
--@include health
--@include attempts
--@include pulls

local k = { pending = KEYS[1], leases = KEYS[2], reclaims = KEYS[3], index = KEYS[4],
  instant = KEYS[5], active = KEYS[7], waiting = KEYS[8], subscriber = KEYS[9] }
local now = clock_ms(ARGV[1])
local most = whole(ARGV[2], 'most jobs')
local limit = whole(ARGV[3], 'limit')
local damage = whole(ARGV[5], 'health points')
local history, stream = whole(ARGV[6], 'rows of history'), whole(ARGV[7], 'rows of the stream')
assert(history > 0, 'rows of history must be positive')
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

-- Who pulled a batch and said nothing more of it has failed to process it.
local function note_expiry(lane_id, pull)
  local subscriber = subscriber_of(lane_id)
  attempted(k.subscriber .. subscriber, -damage, now, true)
  local list, operations = KEYS[10] .. lane_id, KEYS[13] .. subscriber
  local bid = is_a('list', list) and redis.call('LINDEX', list, 0) or ''
  local key = KEYS[11] .. bid
  local events = batch_events(key)
  if events == 0 or not is_a('list', operations) or not is_a('hash', KEYS[12])
    or (stream > 0 and not is_a('stream', KEYS[14])) then
    return
  end
  local header = redis.call('LRANGE', key, 0, HEADER - 1)
  local number = (tonumber(header[3]) or 0) + 1
  redis.call('LSET', key, 2, number)
  local row = { header[4], bid, number, events, pull.bytes, tonumber(header[2]) or now,
    pull.taken, now, 'failed', 0, 'lease_expired', 'pull', tonumber(header[5]) or 0 }
  local exported = ''
  if stream > 0 then
    exported = cmsgpack.pack({ subscriber, unpack(row) })
  end
  row[14] = ''
  local attempt = attempt_of(cmsgpack.pack(row), exported, 'failed', math.max(0, now - pull.taken),
    history, stream)
  add_to_fields(KEYS[12], note_attempt(attempt, operations, KEYS[14], {}, subscriber))
end

-- Backwards, so that the one that expired first stands at the very head.
for i = #expired, 1, -1 do
  local job, lane_id = expired[i], lanes[i]
  local lease = redis.call('HGET', k.leases, job) or '0 ? ?'
  local pull = lane_id ~= '' and parse_pull(lease)
  redis.call('ZREM', k.pending, job)
  redis.call('HDEL', k.leases, job)
  local reclaims = pull and 0 or (tonumber(redis.call('HGET', k.reclaims, job)) or 0) + 1
  if pull then
    note_expiry(lane_id, pull)
    redis.call('LPUSH', k.waiting .. subscriber_of(lane_id), job)
    redis.call('HSET', k.index, job, 'w' .. lane_id)
    release(k, subscriber_of(lane_id))
    moved = moved + 1
  elseif limit > 0 and reclaims >= limit then
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
    redis.call('HSET', k.reclaims, job, reclaims)
    redis.call('LPUSH', k.instant, job)
    redis.call('HSET', k.index, job, 'i' .. lane_id)
    moved = moved + 1
  end
end
if moved > 0 then
  redis.call('PUBLISH', ARGV[4], digits(now))
end
return { moved, quarantined }
