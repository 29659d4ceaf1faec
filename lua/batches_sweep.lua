#!lua flags=allow-oom
-- trash -> gone: free batches that an unsubscription unhooked, a bounded number at a time.
-- One script, because an id taken off the trash before its batch is freed would leak it.
--
-- KEYS[1] list   trash         names of lists of batch ids
-- KEYS[2] prefix trash:{uid}   such a list
-- KEYS[3] prefix batch:{bid}
-- ARGV[1] int    most batches to free
-- Returns array  {freed, lists still in the trash}

--@include clock

local most = whole(ARGV[1], 'most batches')
local freed = 0
while freed < most do
  local name = redis.call('LINDEX', KEYS[1], 0)
  if not name then
    break
  end
  local list = KEYS[2] .. name
  if redis.call('TYPE', list).ok ~= 'list' then -- not ours: it must not block the others
    redis.call('UNLINK', list)
  end
  local bids = redis.call('LPOP', list, math.min(most - freed, 1000)) or {}
  for i = 1, #bids do
    redis.call('UNLINK', KEYS[3] .. bids[i])
  end
  freed = freed + #bids
  if redis.call('EXISTS', list) == 0 then
    redis.call('LPOP', KEYS[1])
  end
end
return { freed, redis.call('LLEN', KEYS[1]) }
