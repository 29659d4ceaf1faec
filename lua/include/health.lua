-- A delivery was tried: health moves within 0..100.
local function attempted(subscriber_key, points, now)
  local health = tonumber(redis.call('HGET', subscriber_key, 'health_points')) or 100
  redis.call('HSET', subscriber_key, 'health_points', math.max(0, math.min(100, health + points)),
    'last_attempted_at', digits(now))
end
