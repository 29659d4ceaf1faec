#!lua flags=no-writes,allow-oom
-- The counters and what is queued, as of one moment.
-- One script, because a full Redis refuses a transaction, even one that only reads.
--
-- KEYS[1] hash   counters
-- KEYS[2] hash   batches:gauges:event
-- Returns array  {{field, value, ...}, {subscriber, value, ...}}

return { redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2]) }
