#!lua flags=allow-oom
-- claimed -> gone: a file is safely published, and exactly its rows go.
-- One script, because rows removed with their claim left would look lost, and a claim removed with
-- its rows left would be cut again.
--
-- KEYS[1] hash   export           as in export_claim
-- KEYS[2] stream attempts
-- KEYS[3] stream dropped
-- KEYS[4] hash   publishes:cut
-- ARGV[1] string dataset: attempts, drops or publishes
-- ARGV[2] string first of the claim
-- ARGV[3] string last of the claim
-- ARGV[4] string id of a stream's first row behind the claim
-- Returns int    1, or 0 when this claim does not stand (any more)

--@include lists

local dataset = ARGV[1]
local streams = { attempts = KEYS[2], drops = KEYS[3] }
assert(streams[dataset] or dataset == 'publishes', 'not a dataset that is drained')
local claim = redis.call('HMGET', KEYS[1], dataset .. ':first', dataset .. ':last')
if claim[1] ~= ARGV[2] or claim[2] ~= ARGV[3] then
  return 0
end
if streams[dataset] then
  must_be('stream', streams[dataset])
  assert(string.match(ARGV[4], '^%d+%-%d+$'), 'not the id of a row')
  redis.call('XTRIM', streams[dataset], 'MINID', ARGV[4])
else
  must_be('hash', KEYS[4])
  redis.call('UNLINK', KEYS[4])
end
redis.call('HSET', KEYS[1], dataset .. ':done', ARGV[3])
redis.call('HDEL', KEYS[1], dataset .. ':first', dataset .. ':last')
return 1
