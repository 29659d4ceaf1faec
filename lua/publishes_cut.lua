#!lua flags=allow-oom
-- waiting -> claimed: the minutes that are over, of the oldest day, set aside for the next file.
-- One script, because a minute counted in two files, or in none, would be doubled or lost.
--
-- KEYS[1] hash   export          as in export_claim
-- KEYS[2] hash   publishes       minute, topic, publisher -> events, bytes, fan-out
-- KEYS[3] hash   publishes:cut   the same, claimed
-- ARGV[1] int    now, ms; '' for the server's clock
-- ARGV[2] string label of the newest published file, when Redis may have lost what it knew; or ''
-- ARGV[3] int    end of that file's day, ms; of later days nothing is published
-- ARGV[4] int    most fields to claim
-- Returns array  {label, {field, value, ...}}, or {} when no minute is over

--@include clock
--@include lists

local WIDTH, MINUTE_MS, DAY_MINUTES = '%015.0f', 60000, 1440
local now = clock_ms(ARGV[1])
local most = whole(ARGV[4], 'most fields')
local state = redis.call('HMGET', KEYS[1], 'publishes:last', 'publishes:done')
if state[1] then
  return { state[1], redis.call('HGETALL', KEYS[3]) }
end
must_be('hash', KEYS[2], KEYS[3])
local done = tonumber(state[2]) or 0
local published = ARGV[2] == '' and 0 or whole(ARGV[2], 'label')
local published_ms = math.min(published, whole(ARGV[3], 'end of the day'))

local over, day, known, cursor, looks = {}, nil, {}, '0', 0
repeat
  local page = redis.call('HSCAN', KEYS[2], cursor, 'COUNT', 1000)
  cursor, looks = page[1], looks + 1
  for i = 1, #page[2], 2 do
    local field = page[2][i]
    local minute = tonumber(string.match(field, '^%d+')) or 0
    local ends, its_day = (minute + 1) * MINUTE_MS, math.floor(minute / DAY_MINUTES)
    if ends <= published_ms and published > done then
      known[#known + 1] = field -- in a file; Redis lost that it was
    elseif ends <= now and (not day or its_day <= day) then
      if its_day ~= day then
        over, day = {}, its_day -- one file is of one day
      end
      if #over < 2 * most then
        over[#over + 1], over[#over + 2] = field, page[2][i + 1]
      end
    end
  end
until cursor == '0' or looks >= 1000
call_in_steps('HDEL', KEYS[2], known)
if #over == 0 then
  return {}
end
local label = string.format(WIDTH, math.max(now, done + 1, published + 1))
local fields = {}
for i = 1, #over, 2 do
  fields[#fields + 1] = over[i]
end
call_in_steps('HSET', KEYS[3], over)
redis.call('HSET', KEYS[1], 'publishes:first', label, 'publishes:last', label)
call_in_steps('HDEL', KEYS[2], fields)
return { label, over }
