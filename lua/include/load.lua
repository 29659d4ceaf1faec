-- What the holder of a lease needs.
-- k  keys: subscriber, lane, batches, batch (prefixes)

-- How to reach a subscriber. The previous secret only while it signs: after that it may be in
-- anybody's hands.
local function receiver_of(k, subscriber, now)
  local fields = redis.call('HMGET', k.subscriber .. subscriber,
    'callback', 'uuid', 'secret', 'previous_secret', 'health_points', 'previous_secret_until')
  local until_ms = tonumber(table.remove(fields)) or 0
  if until_ms <= now then
    fields[4] = false
  end
  return fields
end

-- A lane's oldest batch, closed now and not before: while a lane waits, its current batch goes on
-- filling. A batch that vanished from Redis is given as empty: its holder acknowledges it away.
-- With it comes what was dropped, and not told yet.
local function open_batch(k, lane_id)
  local lane_key = k.lane .. lane_id
  local bid = redis.call('LINDEX', k.batches .. lane_id, 0) or ''
  local key = k.batch .. bid
  local lane = redis.call('HMGET', lane_key, 'cur', 'dropped')
  if bid ~= '' and lane[1] == bid then
    close_current(lane_key, batch_events(key))
  end
  if lane[2] then -- see untold.lua
    redis.call('HSET', lane_key, 'told', string.match(lane[2], '%d+$') or 0)
  end
  redis.call('HDEL', lane_key, 'hold')
  local items = redis.call('TYPE', key).ok == 'list' and redis.call('LRANGE', key, 0, -1) or {}
  return bid, items, lane[2] or ''
end
