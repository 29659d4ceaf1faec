-- After a lane's oldest batch is gone: what becomes of its job, which is in no state now and
-- held a slot of its subscriber.
-- k  keys of due.lua, and: scheduled, lane, batches, batch, lanes (prefixes)
-- Returns when the job is due, or nil when the lane is empty and the job gone.
local function next_due(k, lane_id, now)
  local bid = redis.call('LINDEX', k.batches .. lane_id, 0)
  if not bid then
    return nil
  end
  local created = now
  if redis.call('TYPE', k.batch .. bid).ok == 'list' then
    created = tonumber(redis.call('LINDEX', k.batch .. bid, 1)) or now
  end
  local subscriber = subscriber_of(lane_id)
  redis.call('ZADD', k.lanes .. subscriber, digits(created), string.sub(lane_id, #subscriber + 2))
  if redis.call('HGET', k.lane .. lane_id, 'cur') ~= bid then
    return now -- full, or closed by an earlier take
  end
  local timeout = tonumber(redis.call('HGET', k.subscriber .. subscriber, 'timeout')) or 0
  return math.max(now, created + timeout)
end

-- An empty lane stays, for its sequence number; the score says since when it is idle.
local function rest(k, lane_id, now)
  local subscriber = subscriber_of(lane_id)
  redis.call('ZADD', k.lanes .. subscriber, digits(-now), string.sub(lane_id, #subscriber + 2))
end

local function settle(k, job, lane_id, now)
  local subscriber = subscriber_of(lane_id)
  local due = next_due(k, lane_id, now)
  if not due then
    redis.call('HDEL', k.index, job)
    rest(k, lane_id, now)
  elseif due > now then
    redis.call('ZADD', k.scheduled, digits(due), job)
    redis.call('HSET', k.index, job, 's' .. lane_id)
  else
    admit(k, subscriber, 1, job, lane_id)
    return due
  end
  release(k, subscriber)
  return due
end
