-- Numbers go into Redis as plain digits: Lua would write 1e+15.
local function digits(number)
  return string.format('%.0f', number)
end

-- A whole number that is not negative, or a refusal before anything was written.
local function whole(value, name)
  local number = tonumber(value)
  assert(number and number >= 0 and number == math.floor(number) and number < 2 ^ 53,
    name .. ' must be a whole number')
  return number + 0 -- so that -0 is 0
end

-- The time, read once: a script that asks twice can see two answers.
-- given  string  now in ms, or '' for the server's own clock (tests pass the time in)
local function clock_ms(given)
  if given ~= '' then
    return whole(given, 'now')
  end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
