-- A lease is "fence worker lease_id". Only who knows the fence may end or renew it:
-- a worker that was thought dead and comes back changes nothing.
local function holds(leases, job, fence)
  local lease = redis.call('HGET', leases, job)
  return lease and string.match(lease, '^(%d+) ') == fence
end
