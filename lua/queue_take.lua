#!lua flags=allow-oom
-- scheduled -> instant -> pending: promote what has come due, then lease jobs to a worker.
-- One script, because a job popped and not yet leased would be lost with its worker.
-- A delivery job comes with its lane's oldest batch, which is closed now and not before: while
-- a lane waits, its current batch goes on filling.
--
-- KEYS[1]  zset   jobs:scheduled:{queue}   job -> due, ms
-- KEYS[2]  list   jobs:instant:{queue}
-- KEYS[3]  zset   jobs:pending:{queue}     job -> end of the lease, ms
-- KEYS[4]  hash   jobs:leases:{queue}      job -> fence, worker, lease id
-- KEYS[5]  hash   jobs:index:{queue}       job -> state and lane
-- KEYS[6]  string jobs:fences              the last fence given
-- KEYS[7]  hash   jobs:active              subscriber -> lanes in instant or pending
-- KEYS[8]  prefix jobs:waiting:{subscriber} list of due jobs
-- KEYS[9]  prefix subscriber:{name}        hash: concurrency, state, and how to reach it
-- KEYS[10] prefix lane:{lane}
-- KEYS[11] prefix batches:lane:{lane}
-- KEYS[12] prefix batch:{bid}
-- KEYS[13] hash   jobs:quarantine:{queue}  job -> when and why
-- ARGV[1]  int    now, ms; '' for the server's clock
-- ARGV[2]  string worker
-- ARGV[3]  string lease id, made by the caller
-- ARGV[4]  int    length of the lease, ms
-- ARGV[5]  int    most jobs to lease
-- ARGV[6]  int    most jobs to promote
-- ARGV[7]  int    1 when this repeats a call whose reply was lost: what the lease id holds is given again
-- Returns  array  {now, ms of the next due job or '', {job, fence, bid, {header and events},
--                 {callback, uuid, secret, previous secret while it is valid, health points},
--                 numbers that were dropped and not told yet}, ...}

--@include clock
--@include lists
--@include lanes
--@include due
--@include load

local k = { scheduled = KEYS[1], instant = KEYS[2], pending = KEYS[3], leases = KEYS[4],
  index = KEYS[5], active = KEYS[7], waiting = KEYS[8], subscriber = KEYS[9], lane = KEYS[10],
  batches = KEYS[11], batch = KEYS[12] }
local now = clock_ms(ARGV[1])
local worker, lease_id = ARGV[2], ARGV[3]
local lease_ms = whole(ARGV[4], 'lease')
local most = whole(ARGV[5], 'most jobs')
local promote = whole(ARGV[6], 'most promotions')

check_queue(k)
must_be('hash', KEYS[13])
whole(redis.call('GET', KEYS[6]) or 0, 'the last fence')

-- Redis may hold anything under a lane's keys. One that is not what it should be goes aside with
-- its job, and does not stop the others.
local function is_sound(lane_id)
  local subscriber = subscriber_of(lane_id)
  return lane_id == '' or is_a('hash', k.subscriber .. subscriber)
    and is_a('list', k.waiting .. subscriber)
    and is_a('hash', KEYS[10] .. lane_id)
    and is_a('list', KEYS[11] .. lane_id)
end

local function set_aside(job, lane_id)
  redis.call('HSET', KEYS[13], job, cmsgpack.pack({ digits(now), 'a key of the lane has a wrong type' }))
  redis.call('HSET', k.index, job, 'q' .. lane_id)
end

local due = redis.call('ZRANGE', k.scheduled, '-inf', digits(now), 'BYSCORE', 'LIMIT', 0, promote)
for i = 1, #due do
  local known = redis.call('HGET', k.index, due[i])
  local lane_id = known and string.sub(known, 2)
  redis.call('ZREM', k.scheduled, due[i])
  if known and is_sound(lane_id) then
    make_due(k, due[i], lane_id)
  elseif known then -- a job that the index does not know is nobody's: dropped
    set_aside(due[i], lane_id)
  end
end

local function loaded(job, fence, lane_id, receiver)
  if lane_id == '' then
    return { job, fence, '', {}, {}, '' }
  end
  local bid, items, dropped = open_batch(k, lane_id)
  return { job, fence, bid, items, receiver, dropped }
end

local reply = { digits(now), '' }

if ARGV[7] == '1' then
  local held = redis.call('ZRANGE', k.pending, 0, -1)
  for i = 1, #held do
    local lease = redis.call('HGET', k.leases, held[i]) or ''
    local fence, whose, which = string.match(lease, '^(%d+) (%S+) (%S+)$')
    local known = redis.call('HGET', k.index, held[i])
    if whose == worker and which == lease_id and known and is_sound(string.sub(known, 2)) then
      local lane_id = string.sub(known, 2)
      local receiver = lane_id ~= '' and receiver_of(k, subscriber_of(lane_id), now)
      reply[#reply + 1] = loaded(held[i], fence, lane_id, receiver)
    end
  end
end

while #reply - 2 < most do
  local job = redis.call('LPOP', k.instant)
  if not job then
    break
  end
  local known = redis.call('HGET', k.index, job)
  local lane_id = known and string.sub(known, 2) or ''
  local subscriber = subscriber_of(lane_id)
  local sound, receiver, served = is_sound(lane_id), nil, true
  if sound and subscriber then
    receiver, served = receiver_of(k, subscriber, now)
  end
  if not sound then
    set_aside(job, lane_id)
  elseif not served then -- paused while it stood in line
    redis.call('RPUSH', k.waiting .. subscriber, job)
    redis.call('HSET', k.index, job, 'w' .. lane_id)
    release(k, subscriber)
  elseif known then
    local fence = digits(redis.call('INCR', KEYS[6]))
    redis.call('ZADD', k.pending, digits(now + lease_ms), job)
    redis.call('HSET', k.leases, job, fence .. ' ' .. worker .. ' ' .. lease_id)
    redis.call('HSET', k.index, job, 'p' .. lane_id)
    reply[#reply + 1] = loaded(job, fence, lane_id, receiver)
  end
end

local next_due = redis.call('ZRANGE', k.scheduled, 0, 0, 'WITHSCORES')[2]
if redis.call('LLEN', k.instant) > 0 then
  next_due = digits(now)
end
reply[2] = next_due or ''
return reply
