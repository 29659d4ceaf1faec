#!lua flags=allow-oom
-- active <-> paused, disabled: whether a subscriber's lanes are served.
-- One script, because lanes that wait must be let in with the state that lets them in.
--
-- KEYS[1] hash   jobs:index:main
-- KEYS[2] list   jobs:instant:main
-- KEYS[3] hash   jobs:active
-- KEYS[4] prefix jobs:waiting:{subscriber}
-- KEYS[5] prefix subscriber:{name}        hash: state
-- ARGV[1] string subscriber
-- ARGV[2] string state: active, paused or disabled
-- ARGV[3] int    now, ms; '' for the server's clock
-- ARGV[4] string channel that wakes dispatchers
-- Returns int    1, or 0 when there is no such subscriber

--@include clock
--@include lists
--@include lanes
--@include due

local k = { index = KEYS[1], instant = KEYS[2], active = KEYS[3], waiting = KEYS[4],
  subscriber = KEYS[5] }
local name, state = ARGV[1], ARGV[2]
local now = clock_ms(ARGV[3])
assert(state == 'active' or state == 'paused' or state == 'disabled', 'not a state: ' .. state)
check_queue(k)
check_subscriber(k, name)
if redis.call('EXISTS', k.subscriber .. name) == 0 then
  return 0
end
redis.call('HSET', k.subscriber .. name, 'state', state)
admit(k, name, 0)
tell_changed(ARGV[4], name)
redis.call('PUBLISH', ARGV[4], digits(now))
return 1
