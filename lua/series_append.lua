#!lua flags=allow-oom
-- A minute's row in each series: what the counters rose by since the row before, and what is now.
-- One script, because a rise is counted once only if the row and the totals it ends at are one step.
-- A total that fell was reset: then it rose from nothing. The first totals of a series make no row.
-- allow-oom: how a bus filled up is what its history is for; the series and their length are bounded.
--
-- KEYS[1] hash   series_totals          series -> totals at its last row; '' is the whole bus
-- KEYS[2] list   series                 the whole bus: minute, rises, gauges; MessagePack
-- KEYS[3] prefix series:{subscriber}    list: the same of one subscriber
-- ARGV[1] int    minute, since 1970
-- ARGV[2] bytes  {{series, {total, ...}, {gauge, ...}}, ...}; MessagePack. Others are forgotten
-- ARGV[3] int    rows to keep
-- ARGV[4] int    an untouched series is forgotten after, ms
-- Returns int    rows written; 0 also when the minute has its rows already

--@include clock
--@include lists

local BACK = 60 -- minutes

local minute = whole(ARGV[1], 'minute')
local rows_max, life = whole(ARGV[3], 'rows to keep'), whole(ARGV[4], 'life')
assert(rows_max > 0 and life > 0, 'rows and life must be positive')

local function numbers(items, name)
  assert(type(items) == 'table', name .. ' must be a list')
  for i = 1, #items do
    whole(items[i], name)
  end
  return items
end

local given = cmsgpack.unpack(ARGV[2])
assert(type(given) == 'table', 'series must be a list')
local known = {}
must_be('hash', KEYS[1])
for i = 1, #given do
  assert(type(given[i]) == 'table' and type(given[i][1]) == 'string', 'a series has a name')
  numbers(given[i][2], 'total')
  numbers(given[i][3], 'gauge')
  local name = given[i][1]
  assert(not known[name], 'a series comes once')
  known[name] = name == '' and KEYS[2] or KEYS[3] .. name
  must_be('list', known[name])
end

-- Kept as `minute total total ...`.
local function totals_of(name)
  local found = {}
  for word in string.gmatch(redis.call('HGET', KEYS[1], name) or '', '%d+') do
    found[#found + 1] = tonumber(word)
  end
  return table.remove(found, 1), found
end

assert(known[''], 'the whole bus must be among the series')
local last = totals_of('')
-- Further back than that, it is Redis' clock that went back, and the series begin anew.
if last and minute <= last and last - minute < BACK then
  return 0
end

local function rises(before, now)
  local found = {}
  for i = 1, #now do
    local old = before[i] or 0
    found[i] = now[i] < old and now[i] or now[i] - old
  end
  return found
end

local function append(name, totals, gauges)
  local since, before = totals_of(name)
  local words = { digits(minute) }
  for i = 1, #totals do
    words[i + 1] = digits(totals[i])
  end
  redis.call('HSET', KEYS[1], name, table.concat(words, ' '))
  if not since or minute <= since then
    return 0
  end
  local row = { minute, minute - since }
  for _, items in ipairs({ rises(before, totals), gauges }) do
    for i = 1, #items do
      row[#row + 1] = items[i]
    end
  end
  redis.call('RPUSH', known[name], cmsgpack.pack(row))
  redis.call('LTRIM', known[name], digits(-rows_max), -1)
  redis.call('PEXPIRE', known[name], digits(life))
  return 1
end

local written = 0
for i = 1, #given do
  written = written + append(unpack(given[i], 1, 3))
end
local names = redis.call('HKEYS', KEYS[1])
for i = 1, #names do
  if not known[names[i]] then
    redis.call('HDEL', KEYS[1], names[i])
    redis.call('UNLINK', names[i] == '' and KEYS[2] or KEYS[3] .. names[i])
  end
end
return written
