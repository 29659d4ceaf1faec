-- Whether a job really is in the state that the index gives it.
-- k  keys: scheduled, instant, pending, leases, quarantine, waiting (prefix)
local function is_there(k, job, state, lane_id)
  if state == 's' then
    return redis.call('ZSCORE', k.scheduled, job)
  elseif state == 'p' then
    return redis.call('ZSCORE', k.pending, job) and redis.call('HGET', k.leases, job)
  elseif state == 'q' then
    return redis.call('HGET', k.quarantine, job)
  end
  local list = state == 'i' and k.instant or k.waiting .. (subscriber_of(lane_id) or '')
  return redis.call('LPOS', list, job)
end
