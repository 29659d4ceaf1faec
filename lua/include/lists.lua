-- unpack() puts everything on Lua's stack, which ends near 8,000: go in steps.
local STEP = 1000

local function push_slice(key, items, first, last)
  for from = first, last, STEP do
    redis.call('RPUSH', key, unpack(items, from, math.min(from + STEP - 1, last)))
  end
end

local function call_in_steps(command, key, items)
  for from = 1, #items, STEP do
    redis.call(command, key, unpack(items, from, math.min(from + STEP - 1, #items)))
  end
end

-- The fields of a hash with amounts added, as {field, value, ...} for one HSET. Not HINCRBY: it
-- would cost a call for each field, and fail half-way through a script on a value that is no
-- number.
local function summed(key, amounts)
  local fields, sums = {}, {}
  for field in pairs(amounts) do
    fields[#fields + 1] = field
  end
  for from = 1, #fields, STEP do
    local values = redis.call('HMGET', key, unpack(fields, from, math.min(from + STEP - 1, #fields)))
    for i = 1, #values do
      local field = fields[from + i - 1]
      sums[#sums + 1] = field
      sums[#sums + 1] = string.format('%.0f', (tonumber(values[i]) or 0) + amounts[field])
    end
  end
  return sums
end

local function add_to_fields(key, amounts)
  call_in_steps('HSET', key, summed(key, amounts))
end

local function is_a(kind, key)
  local found = redis.call('TYPE', key).ok
  return found == kind or found == 'none'
end

-- Refuses keys of a wrong type before the first write: Redis keeps what a script
-- wrote before it failed.
local function must_be(kind, ...)
  for i = 1, select('#', ...) do
    local key = select(i, ...)
    assert(is_a(kind, key), key .. ' is not a ' .. kind)
  end
end

-- A list of strings out of MessagePack, or a refusal.
local function strings(items, name)
  assert(type(items) == 'table', name .. ' must be a list')
  for i = 1, #items do
    assert(type(items[i]) == 'string', name .. ' must be strings')
  end
  return items
end
