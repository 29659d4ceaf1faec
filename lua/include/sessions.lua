-- A session's row is `opened seen token`, both times in ms.
local function session_of(row)
  local opened, seen, token = string.match(row or '', '^(%d+) (%d+) (%S+)$')
  return tonumber(opened), tonumber(seen), token
end

-- What cannot be read is over too.
local function is_over(row, now, life, idle)
  local opened, seen = session_of(row)
  return not opened or now >= opened + life or now >= seen + idle
end
