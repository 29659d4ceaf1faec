-- Refuses what the functions below could fail on half-way.
-- k  keys: index, active, instant, and those that the script has of pending, leases, reclaims
local function check_queue(k)
  must_be('hash', k.index, k.active)
  must_be('list', k.instant)
  if k.pending then
    must_be('zset', k.pending)
    must_be('hash', k.leases)
  end
  if k.reclaims then
    must_be('hash', k.reclaims)
  end
end

local function check_subscriber(k, subscriber)
  must_be('hash', k.subscriber .. subscriber)
  must_be('list', k.waiting .. subscriber)
end

-- Workers that took batches ahead give them back, before the change is answered.
local function tell_changed(channel, subscriber)
  redis.call('PUBLISH', channel, 's:' .. subscriber)
end

-- Lets a subscriber's due lanes into instant, in their turn, as far as its concurrency
-- allows. A paused or disabled subscriber has no slots: its lanes keep waiting. Who has no
-- callback takes them out of the list itself, and hears of them on a channel of the list's name.
-- k      keys: instant, index, active, waiting (prefix), subscriber (prefix)
-- freed  slots that are free again
-- job, lane_id  one that has come due just now, and has its turn after those that wait; or nil
local function admit(k, subscriber, freed, job, lane_id)
  local waiting = k.waiting .. subscriber
  local config = redis.call('HMGET', k.subscriber .. subscriber, 'concurrency', 'state', 'callback')
  local slots = tonumber(config[1]) or 0
  if config[2] and config[2] ~= 'active' then
    slots = 0
  end
  local was = tonumber(redis.call('HGET', k.active, subscriber)) or 0
  local active = math.max(0, was - freed)
  local pulls = config[3] == ''
  while active < slots and not pulls do
    local first = redis.call('LPOP', waiting)
    local first_lane = first and string.sub(redis.call('HGET', k.index, first) or 'w', 2)
    if not first then
      first, first_lane, job = job, lane_id, nil
    end
    if not first then
      break
    end
    redis.call('RPUSH', k.instant, first)
    redis.call('HSET', k.index, first, 'i' .. first_lane)
    active = active + 1
  end
  if job then
    redis.call('RPUSH', waiting, job)
    redis.call('HSET', k.index, job, 'w' .. lane_id)
  end
  if active == 0 and was > 0 then
    redis.call('HDEL', k.active, subscriber)
  elseif active ~= was then
    redis.call('HSET', k.active, subscriber, active)
  end
  if pulls and active < slots and redis.call('EXISTS', waiting) == 1 then
    redis.call('PUBLISH', waiting, '')
  end
end

-- A slot of the subscriber is free again: the next waiting lane has it.
local function release(k, subscriber)
  admit(k, subscriber, 1)
end

-- A job has come due: to the tail of instant, or of its subscriber's own list.
local function make_due(k, job, lane_id)
  if lane_id == '' then
    redis.call('RPUSH', k.instant, job)
    redis.call('HSET', k.index, job, 'i')
  else
    admit(k, subscriber_of(lane_id), 0, job, lane_id)
  end
end

-- Takes a job out of whichever state it is in; the index entry is the caller's.
local function leave_state(k, job, state, lane_id)
  if state == 's' then
    redis.call('ZREM', k.scheduled, job)
  elseif state == 'i' then
    redis.call('LREM', k.instant, 1, job)
  elseif state == 'w' then
    redis.call('LREM', k.waiting .. subscriber_of(lane_id), 1, job)
  elseif state == 'p' then
    redis.call('ZREM', k.pending, job)
    redis.call('HDEL', k.leases, job)
  elseif state == 'q' then
    redis.call('HDEL', k.quarantine, job)
  end
  redis.call('HDEL', k.reclaims, job)
end
