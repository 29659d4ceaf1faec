#!lua
-- accept: store events in every lane of the topic, with the job that will deliver each lane.
-- One script, because an event in some lanes only, or in a lane without a job, would be lost.
-- No allow-oom: a full Redis refuses it before any effect.
--
-- KEYS[1]  hash   routes                    version: the routing table the caller decided by; live
-- KEYS[2]  hash   topic:{topic}             counter, last_event; and a channel of that name
-- KEYS[3]  hash   counters
-- KEYS[4]  hash   batches:gauges:event      subscriber -> events queued
-- KEYS[5]  hash   batches:gauges:batch      subscriber -> batches queued
-- KEYS[6]  zset   jobs:scheduled:main       job -> due, ms
-- KEYS[7]  hash   jobs:index:main           job -> state and lane
-- KEYS[8]  prefix lane:{lane}               hash: cur, seq, hold
-- KEYS[9]  prefix batches:lane:{lane}       list of batch ids, oldest first
-- KEYS[10] prefix batch:{bid}               list: header, events
-- KEYS[11] prefix lanes:{subscriber}        zset: lane -> its oldest batch's creation, ms
-- KEYS[12] prefix ids:{topic}:              string: an id that was accepted
-- KEYS[13] hash   publishes                 minute, topic, publisher -> what was accepted, for the export
-- ARGV[1]  string version of the caller's routing table
-- ARGV[2]  int    now, ms; '' for the server's clock
-- ARGV[3]  string unique id of this call: the batch ids made here begin with it
-- ARGV[4]  int    most lanes a subscriber may have
-- ARGV[5]  string channel that wakes dispatchers
-- ARGV[6]  string topic name, the counters' tag
-- ARGV[7]  bytes  plan, MessagePack: [[subscriber, lane, max, timeout ms, [event numbers]?], ...]
-- ARGV[8]  bytes  ids, MessagePack: [kept ms, request id, digest of the body, [event ids]]; '' for none
-- ARGV[9]  string the topic's owner; '' when it has none
-- ARGV[10] int    most fields of KEYS[13]; 0 while nobody exports
-- ARGV[11+] string the events, as they will be delivered
-- Returns  array  {'ok', stored, duplicates} | {'stale'} | {'reused'} | {'lanes', subscriber}

--@include clock
--@include lists
--@include lanes

local routes, topic, counters, event_gauges, batch_gauges, scheduled, index =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local lane_prefix, lane_batches, batch_prefix, lanes_prefix, ids_prefix =
  KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local FIRST = 11 -- where the events begin in ARGV

-- `live`: until when somebody follows a stream of some topic. Read with the version, so that a bus
-- without streams pays next to nothing for them.
local known = redis.call('HMGET', routes, 'version', 'live')
local live = known[2]
if (known[1] or '0') ~= ARGV[1] then
  return { 'stale' }
end

-- 1. Read and check everything; nothing is written before the last check has passed.
local plan = cmsgpack.unpack(ARGV[7])
local max_lanes = whole(ARGV[4], 'max lanes')
local max_minutes = whole(ARGV[10], 'fields for the export')
local given_now = ARGV[2] ~= '' and whole(ARGV[2], 'now')
local events = #ARGV - FIRST + 1

-- Which events are new. `is_new` stays nil when all are, so that lanes can take slices of ARGV.
local is_new, stored = nil, events
local keep, kept_ms = {}, nil
if ARGV[8] ~= '' then
  local ids = cmsgpack.unpack(ARGV[8])
  local request, body, each = ids[2], ids[3], ids[4]
  kept_ms = whole(ids[1], 'kept ms')
  assert(kept_ms > 0 and type(body) == 'string', 'ids need a time and a digest')
  assert(#each == events, 'one id for each event')
  if request ~= '' then
    local before = redis.call('GET', ids_prefix .. 'r:' .. request)
    if before == body then
      return { 'ok', 0, events }
    elseif before then
      return { 'reused' }
    end
    keep['r:' .. request] = body
  end
  local fresh = {}
  for i = 1, events do
    local field = 'e:' .. each[i]
    if each[i] == '' then
      fresh[i] = true
    elseif keep[field] or redis.call('EXISTS', ids_prefix .. field) == 1 then
      is_new, stored = fresh, stored - 1
    else
      fresh[i], keep[field] = true, '1'
    end
  end
end

-- The new events among those that a lane is to get.
local function choose(numbers)
  local chosen = {}
  for i = 1, numbers and #numbers or events do
    local number = numbers and numbers[i] or i
    if not is_new or is_new[number] then
      chosen[#chosen + 1] = assert(ARGV[FIRST - 1 + number], 'no event of that number')
    end
  end
  return chosen, 1, #chosen
end

-- Most lanes have a current batch with room for all: they need one push and nothing else. The
-- others are told apart here and looked at more closely.
local roomy, others, planned, added, fanout = {}, {}, {}, {}, 0
for i = 1, #plan do
  local subscriber, name, max, timeout, numbers = unpack(plan[i], 1, 5)
  assert(type(max) == 'number' and max >= 1 and max % 1 == 0, 'max must be a positive whole number')
  assert(type(timeout) == 'number' and timeout >= 0, 'timeout must be a number')
  local id = subscriber .. '|' .. name
  assert(not planned[id], 'a lane stands in the plan twice')
  planned[id] = true
  local items, first, last = ARGV, FIRST, #ARGV
  if numbers or is_new then
    items, first, last = choose(numbers)
  end
  local count = last - first + 1
  if count > 0 then
    added[subscriber] = (added[subscriber] or 0) + count
    fanout = fanout + count
    local current = redis.call('HGET', lane_prefix .. id, 'cur')
    local filled = current and redis.call('LLEN', batch_prefix .. current) - HEADER
    if filled and filled >= 0 and filled + count < max then
      roomy[#roomy + 1] = { batch_prefix .. current, items, first, last }
    else
      others[#others + 1] = { subscriber = subscriber, name = name, id = id, max = max,
        timeout = timeout, items = items, first = first, last = last, was_current = current,
        -- A current batch that vanished (filled < 0) would get a push without a header.
        cur = filled and filled >= 0 and current, filled = filled }
    end
  end
end

local now, new_lanes = nil, {}
if #others > 0 then
  now = given_now or clock_ms('')
  must_be('zset', scheduled)
  must_be('hash', index)
  must_be('hash', batch_gauges)
end
for i = 1, #others do
  local lane = others[i]
  local state = redis.call('HMGET', lane_prefix .. lane.id, 'seq', 'hold')
  lane.seq, lane.hold = tonumber(state[1]) or 0, state[2]
  lane.batches = redis.call('LLEN', lane_batches .. lane.id)
  if lane.batches == 0 then
    new_lanes[lane.subscriber] = (new_lanes[lane.subscriber] or 0) + (state[1] and 0 or 1)
  end
end
for subscriber, count in pairs(new_lanes) do
  local has = redis.call('ZCARD', lanes_prefix .. subscriber)
  if count > 0 and has + count > max_lanes then
    return { 'lanes', subscriber }
  end
end

local bytes, last_event = 0, nil
for i = 1, events do
  if not is_new or is_new[i] then
    last_event = ARGV[FIRST - 1 + i]
    bytes = bytes + #last_event
  end
end
local count_topic = summed(topic, { counter = stored })
local counted = {
  ['events.published,topic=' .. ARGV[6]] = stored,
  ['events.bytes,topic=' .. ARGV[6]] = bytes,
}
local minute, in_minute
if max_minutes > 0 and stored > 0 then
  now = now or given_now or clock_ms('')
  minute = string.format('%.0f|%s|%s', math.floor(now / 60000), ARGV[6], ARGV[9])
  local was = redis.call('HGET', KEYS[13], minute)
  if was or redis.call('HLEN', KEYS[13]) < max_minutes then
    local e, b, f = string.match(was or '0 0 0', '^(%d+) (%d+) (%d+)$')
    in_minute = string.format('%.0f %.0f %.0f', (e or 0) + stored, (b or 0) + bytes,
      (f or 0) + fanout)
  else
    counted['publishes.overflowed'] = stored
  end
end
local count_events = summed(counters, counted)
local count_queued = summed(event_gauges, added)

-- 2. Write.
for i = 1, #roomy do
  local lane = roomy[i]
  push_slice(lane[1], lane[2], lane[3], lane[4])
end

local made, wake = 0, nil
local added_batches, jobs_due, jobs_known = {}, {}, {}

-- Puts a lane's events into its current batch and as many new ones as they need.
-- Returns how many it made, and whether the batch that was there first is full now.
local function append(lane)
  local at, created, was_filled = lane.first, 0, false
  if lane.cur then
    local upto = math.min(lane.last, at + lane.max - lane.filled - 1)
    push_slice(batch_prefix .. lane.cur, lane.items, at, upto)
    lane.filled = lane.filled + math.max(0, upto - at + 1)
    at = math.max(at, upto + 1)
    if lane.filled >= lane.max then
      lane.seq, lane.cur, was_filled = lane.seq + lane.filled, false, true
    end
  end
  while at <= lane.last do
    local upto = math.min(lane.last, at + lane.max - 1)
    local bid = ARGV[3] .. string.format('%x', made)
    made, created = made + 1, created + 1
    redis.call('RPUSH', batch_prefix .. bid, lane.subscriber, digits(now), 0, lane.name,
      digits(lane.seq + 1))
    push_slice(batch_prefix .. bid, lane.items, at, upto)
    redis.call('RPUSH', lane_batches .. lane.id, bid)
    if upto - at + 1 == lane.max then
      lane.seq = lane.seq + lane.max
    else
      lane.cur = bid
    end
    at = upto + 1
  end
  return created, was_filled
end

for i = 1, #others do
  local lane = others[i]
  local created, was_filled = append(lane)
  if created > 0 then
    added_batches[lane.subscriber] = (added_batches[lane.subscriber] or 0) + created
  end
  redis.call('HSET', lane_prefix .. lane.id, 'seq', digits(lane.seq))
  if lane.cur then
    redis.call('HSET', lane_prefix .. lane.id, 'cur', lane.cur)
  elseif lane.was_current then
    redis.call('HDEL', lane_prefix .. lane.id, 'cur')
  end
  if lane.batches == 0 then
    local job = deliver_job(lane.id)
    local due = (created > 1 or not lane.cur) and now or now + lane.timeout
    jobs_due[#jobs_due + 1], jobs_due[#jobs_due + 2] = digits(due), job
    jobs_known[#jobs_known + 1], jobs_known[#jobs_known + 2] = job, 's' .. lane.id
    redis.call('ZADD', lanes_prefix .. lane.subscriber, digits(now), lane.name)
    wake = math.min(wake or due, due)
  elseif was_filled and lane.batches == 1 and not lane.hold then
    -- The oldest batch is full before its deadline. XX: a job that is no longer scheduled is
    -- already on its way.
    redis.call('ZADD', scheduled, 'XX', 'LT', digits(now), deliver_job(lane.id))
    wake = now
  end
end
call_in_steps('ZADD', scheduled, jobs_due)
call_in_steps('HSET', index, jobs_known)
add_to_fields(batch_gauges, added_batches)
for field, value in pairs(keep) do
  redis.call('SET', ids_prefix .. field, value, 'PX', kept_ms)
end
call_in_steps('HSET', event_gauges, count_queued)
if in_minute then
  redis.call('HSET', KEYS[13], minute, in_minute)
end
if stored > 0 then
  redis.call('HSET', counters, unpack(count_events))
  redis.call('HSET', topic, 'last_event', last_event, unpack(count_topic))
end
if wake then
  redis.call('PUBLISH', ARGV[5], digits(wake))
end

-- Who follows the topic gets the number of the event before, and the events, one a line.
local function tell_live()
  if (tonumber(live) or 0) < (now or given_now or clock_ms('')) then
    redis.call('HDEL', routes, 'live')
  elseif redis.call('PUBSUB', 'NUMSUB', topic)[2] > 0 then
    local items, first, last = ARGV, FIRST, #ARGV
    if is_new then
      items, first, last = choose()
    end
    local before = digits(tonumber(count_topic[2]) - stored)
    redis.call('PUBLISH', topic, before .. '\n' .. table.concat(items, '\n', first, last))
  end
end
if live and stored > 0 then
  tell_live()
end
return { 'ok', stored, events - stored }
