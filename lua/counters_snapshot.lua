#!lua flags=allow-oom
-- none, or counters without an epoch -> with one: the counters as of one moment.
-- One script, because what is counted between the reading and a new epoch would belong to neither.
-- The epoch is one of the counters' fields, so that it goes when they go.
--
-- KEYS[1] hash   counters
-- KEYS[2] hash   batches:gauges:event
-- ARGV[1] string unique id, for an epoch that begins
-- ARGV[2] string the epoch that shall end: its counters went back in time; '' for none
-- ARGV[3] int    now, ms; '' for the server's clock
-- Returns array  {now, epoch, 1 when it began now, {field, value, ...}, {subscriber, value, ...}}

--@include clock
--@include lists

local now = clock_ms(ARGV[3])
must_be('hash', KEYS[1], KEYS[2])
local epoch, begins = redis.call('HGET', KEYS[1], 'epoch'), 0
if not epoch or epoch == ARGV[2] then
  -- z: every counter was zero then; u: unknown.
  local was = (not epoch and redis.call('EXISTS', KEYS[1]) == 0) and 'z' or 'u'
  epoch, begins = was .. digits(now) .. '.' .. ARGV[1], 1
  redis.call('HSET', KEYS[1], 'epoch', epoch)
end
return { digits(now), epoch, begins, redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2]) }
