-- A delivery was tried: health moves within 0..100. `failures` counts since the last success.
-- events  how many it has been sent now
local function attempted(subscriber_key, points, now, has_failed, events)
  local was = redis.call('HMGET', subscriber_key, 'health_points', 'failures', 'sent')
  local health = (tonumber(was[1]) or 100) + points
  redis.call('HSET', subscriber_key, 'health_points', math.max(0, math.min(100, health)),
    'last_attempted_at', digits(now),
    'failures', has_failed and digits((tonumber(was[2]) or 0) + 1) or 0,
    'sent', digits((tonumber(was[3]) or 0) + (events or 0)))
end
