-- A batch is a list: five items of header, then its events.
local HEADER = 5 -- subscriber, created ms, attempts, lane, first sequence number

local function subscriber_of(lane_id)
  return string.match(lane_id, '^(.-)|')
end

local function deliver_job(lane_id)
  local subscriber, lane = string.match(lane_id, '^(.-)|(.*)$')
  return cmsgpack.pack({ 'deliver', { subscriber, lane } })
end

-- How many events a batch holds; 0 for one that vanished or is not a list.
local function batch_events(key)
  if redis.call('TYPE', key).ok ~= 'list' then
    return 0
  end
  return math.max(0, redis.call('LLEN', key) - HEADER)
end

-- No more events go into the current batch: the next event starts a new one.
local function close_current(lane_key, seq, events)
  redis.call('HSET', lane_key, 'seq', string.format('%.0f', seq + events))
  redis.call('HDEL', lane_key, 'cur')
end
