#!lua flags=allow-oom
-- waiting -> claimed: which rows of a stream the next file holds. A claim stands until its file is
-- published, whoever dies: the same rows always make the same file.
-- One script, because two exporters that cut differently would put a row into two files.
--
-- KEYS[1] hash   export   {dataset}:first and :last of the claim; :done, the last that was published
-- ARGV[1] string dataset
-- ARGV[2] string first row to claim; '' to ask only
-- ARGV[3] string last row; labels of one width, so that they compare as text
-- Returns array  {first, last} of the claim that stands, or {}: somebody published these since

local dataset, first, last = ARGV[1], ARGV[2], ARGV[3]
assert(#first == #last and first <= last, 'a range must have two ends of one width')
local has = redis.call('HMGET', KEYS[1], dataset .. ':first', dataset .. ':last', dataset .. ':done')
if has[1] then
  return { has[1], has[2] }
end
if first == '' or first <= (has[3] or '') then
  return {}
end
redis.call('HSET', KEYS[1], dataset .. ':first', first, dataset .. ':last', last)
return { first, last }
