-- Numbers of events that were dropped, and of which the subscriber was not told yet, stand in the
-- lane's hash, as 'first-last,first-last'. Who takes the lane's batch gets them, and `told` keeps
-- up to where: an acknowledgement forgets these, and no more.
local MOST_RANGES = 16 -- a lane has two at most; Redis may hold anything

local function untold_of(lane_key)
  local ranges = {}
  local text = redis.call('HGET', lane_key, 'dropped') or ''
  for first, last in string.gmatch(text, '(%d+)%-(%d+)') do
    ranges[#ranges + 1] = { first = tonumber(first), last = tonumber(last) }
  end
  return ranges
end

local function keep_untold(lane_key, ranges)
  table.sort(ranges, function(a, b) return a.first < b.first end)
  local joined, texts = {}, {}
  for i = 1, #ranges do
    local before = joined[#joined]
    if before and ranges[i].first <= before.last + 1 then
      before.last = math.max(before.last, ranges[i].last)
    else
      joined[#joined + 1] = { first = ranges[i].first, last = ranges[i].last }
    end
  end
  for i = math.max(1, #joined - MOST_RANGES + 1), #joined do
    texts[#texts + 1] = digits(joined[i].first) .. '-' .. digits(joined[i].last)
  end
  if #texts > 0 then
    redis.call('HSET', lane_key, 'dropped', table.concat(texts, ','))
  else
    redis.call('HDEL', lane_key, 'dropped')
  end
end

local function add_untold(lane_key, ranges)
  local all = untold_of(lane_key)
  for i = 1, #ranges do
    all[#all + 1] = ranges[i]
  end
  keep_untold(lane_key, all)
end

-- What its holder was told when it took the batch is known now. More may have been dropped since.
local function forget_told(lane_key, told)
  local left = {}
  for _, range in ipairs(untold_of(lane_key)) do
    if range.last > told then
      left[#left + 1] = { first = math.max(range.first, told + 1), last = range.last }
    end
  end
  redis.call('HDEL', lane_key, 'told')
  keep_untold(lane_key, left)
end
