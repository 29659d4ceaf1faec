-- What the holder of a lease needs.
-- k  keys: subscriber, lane, batches, batch (prefixes)

-- How to reach a subscriber, and whether workers serve it: who is active and has a callback. The
-- previous secret only while it signs: after that it may be in anybody's hands.
local function receiver_of(k, subscriber, now)
  local fields = redis.call('HMGET', k.subscriber .. subscriber,
    'callback', 'uuid', 'secret', 'previous_secret', 'health_points', 'previous_secret_until', 'state')
  local state = table.remove(fields) or 'active'
  local until_ms = tonumber(table.remove(fields)) or 0
  if until_ms <= now then
    fields[4] = false
  end
  return fields, state == 'active' and fields[1] ~= ''
end

-- A lane's oldest batch, closed now and not before: while a lane waits, its current batch goes on
-- filling. A batch that vanished from Redis is given as empty: its holder acknowledges it away.
-- With it comes what was dropped, and not told yet.
local function open_batch(k, lane_id)
  local lane_key = k.lane .. lane_id
  local bid = redis.call('LINDEX', k.batches .. lane_id, 0) or ''
  local key = k.batch .. bid
  local items = redis.call('TYPE', key).ok == 'list' and redis.call('LRANGE', key, 0, -1) or {}
  local lane = redis.call('HMGET', lane_key, 'cur', 'dropped', 'hold', 'seq')
  if bid ~= '' and lane[1] == bid then
    close_current(lane_key, tonumber(lane[4]) or 0, math.max(0, #items - HEADER))
  end
  if lane[2] then -- see untold.lua
    redis.call('HSET', lane_key, 'told', string.match(lane[2], '%d+$') or 0)
  end
  if lane[3] then
    redis.call('HDEL', lane_key, 'hold')
  end
  return bid, items, lane[2] or ''
end
