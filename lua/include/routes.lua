-- The routing table moved on: one more version, and what changed, so that web processes
-- reload only that. The version itself stands among the changes (`v:`): who does not find the
-- one it has there is too far behind, or has seen what a failover or a FLUSHALL lost since, and
-- reloads everything. A version is the time in microseconds (or one more than the last): a plain
-- count would then give a number a second time, to other contents.
local CHANGES_KEPT = 10000

local function bump(routes, changes, members)
  local time = redis.call('TIME')
  local last = tonumber(redis.call('HGET', routes, 'version')) or 0
  local version = string.format('%.0f', math.max(last + 1, time[1] * 1000000 + time[2]))
  redis.call('HSET', routes, 'version', version)
  for i = 1, #members do
    redis.call('ZADD', changes, version, members[i])
  end
  redis.call('ZADD', changes, version, 'v:' .. version)
  local extra = redis.call('ZCARD', changes) - CHANGES_KEPT
  if extra > 0 then
    redis.call('ZREMRANGEBYRANK', changes, 0, extra - 1)
  end
end

local function is_stale(routes, version)
  return (redis.call('HGET', routes, 'version') or '0') ~= version
end
