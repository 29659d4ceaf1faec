-- Who has no callback pulls. Its lease is like a worker's, "fence pull/subscriber id/taken/bytes",
-- so that every other script ends it as it ends theirs.
local PULLER = 'pull/'

local function pull_lease(fence, subscriber, id, now, bytes)
  return fence .. ' ' .. PULLER .. subscriber .. ' ' .. id .. '/' .. digits(now) .. '/' .. digits(bytes)
end

-- nil for a worker's lease.
local function parse_pull(lease)
  local fence, id, taken, bytes = string.match(lease or '',
    '^(%d+) ' .. PULLER .. '%S+ ([%w_-]+)/(%d+)/(%d+)$')
  return fence and { fence = fence, id = id, taken = tonumber(taken), bytes = tonumber(bytes) }
end
