-- A finished attempt is written down with the change it made: in the subscriber's history, in the
-- counters and, while the export is on, in the stream that the export drains.
local HISTORY_MS = 86400000 -- an untouched history is forgotten after a day

-- The rows may be '': no attempt, or nobody who exports.
local function attempt_of(history_row, stream_row, outcome, took, history_max, stream_max)
  local attempt = { history_row = history_row, stream_row = stream_row, outcome = outcome,
    -- No longer than a day, so that the sum of squares stays a whole number.
    took = math.min(whole(took, 'ms it took'), HISTORY_MS),
    history_max = whole(history_max, 'rows of history'),
    stream_max = whole(stream_max, 'rows of the stream') }
  assert(attempt.history_max > 0, 'rows of history must be positive')
  return attempt
end

local function check_attempt(attempt, history, stream, counters)
  must_be('list', history)
  must_be('hash', counters)
  if attempt.stream_row ~= '' then
    must_be('stream', stream)
  end
end

local function keep_history(key, row, most)
  if redis.call('RPUSH', key, row) > most then
    redis.call('LTRIM', key, digits(-most), -1)
  end
  redis.call('PEXPIRE', key, HISTORY_MS)
end

-- Nobody drained it in time: the oldest go, counted.
local function cut_stream(stream, most, name, count)
  local cut = redis.call('XTRIM', stream, 'MAXLEN', digits(most))
  if cut > 0 then
    count[name .. '.overflowed'] = cut
  end
end

-- count  field of `counters` -> to add, by the caller: what this counts is put in
local function note_attempt(attempt, history, stream, count, subscriber)
  if attempt.history_row == '' then
    return count
  end
  keep_history(history, attempt.history_row, attempt.history_max)
  local tag = 'subscriber=' .. subscriber
  count['delivery.attempts,outcome=' .. attempt.outcome .. ',' .. tag] = 1
  count['delivery.time,' .. tag] = attempt.took
  count['delivery.time2,' .. tag] = attempt.took ^ 2
  if attempt.stream_row ~= '' then
    redis.call('XADD', stream, '*', 'a', attempt.stream_row)
    cut_stream(stream, attempt.stream_max, 'attempts', count)
  end
  return count
end
