"""What runs inside Redis: how a charge is made, and how it is changed.

All arithmetic is on integers: microseconds by the server's clock, and thousandths of a unit. A key is read and written
only by its own limit, and each script that writes a key also gives it the time to live after which it says nothing any
more.

Several charges of the same keys can be made in one run: a script's arguments are records, one after the other (an id,
then for each key what is to be done with it), and its answer has one line of whole numbers per record.

``gcra``
    A string: the theoretical arrival time, the moment at which the bucket will be full again.
``window``
    A sorted set. Each charge is a member ``<id>:<amount>`` whose score is its time. One more member, ``total``, has
    minus the sum of the amounts as its score: sum and entries are one key, so that no eviction parts them, and every
    range that begins above 0 holds entries only. A server's clock that goes back (another server after a failover)
    cannot free anything: a new entry is never stamped earlier than the newest there is.
"""

from __future__ import annotations

from guardrail.redis_store import Script

ACQUIRE = Script(
    "acquire",
    """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local seen, meters, answers = {}, {}, {}

local function text(number)
  return string.format('%.0f', number)
end

local function amount_of(member)
  return tonumber(string.match(member, ':(%d+)$'))
end

local function demand(spelled)
  if not seen[spelled] then
    local kind, amount, allowance, period = string.match(spelled, '^(%a+) (%d+) (%d+) (%d+)$')
    seen[spelled] = {
      kind = kind, amount = tonumber(amount), allowance = tonumber(allowance), period = tonumber(period)
    }
  end
  return seen[spelled]
end

local function read_window(meter)
  local key = meter.key
  meter.entries, meter.waits, meter.stamp = {}, {}, now
  meter.state = -(tonumber(redis.call('ZSCORE', key, 'total') or 0))
  local newest = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
  if newest[1] and tonumber(newest[2]) > now then
    meter.stamp = tonumber(newest[2])
  end
  local old = text(meter.stamp - meter.period)
  local expired = redis.call('ZRANGEBYSCORE', key, 1, old)
  if #expired > 0 then
    for _, member in ipairs(expired) do
      meter.state = meter.state - amount_of(member)
    end
    redis.call('ZREMRANGEBYSCORE', key, 1, old)
    redis.call('ZADD', key, text(-meter.state), 'total')
  end
end

local function wait_in_window(meter, missing)
  if missing <= 0 then
    return 0
  end
  if not meter.waits[missing] then
    local rest, from, wait = missing, 0, 0
    while rest > 0 do
      local entries = redis.call('ZRANGEBYSCORE', meter.key, 1, '+inf', 'WITHSCORES', 'LIMIT', from, 64)
      if #entries == 0 then
        wait, rest = meter.period, 0 -- what is charged in this run, and not written yet
      end
      for i = 1, #entries, 2 do
        if rest > 0 then
          rest = rest - amount_of(entries[i])
          wait = tonumber(entries[i + 1]) + meter.period - meter.stamp
        end
      end
      from = from + 64
    end
    meter.waits[missing] = wait
  end
  return meter.waits[missing]
end

for i, key in ipairs(KEYS) do
  local terms = demand(ARGV[i + 1])
  local meter = {key = key, period = terms.period, window = terms.kind == 'window'}
  if meter.window then
    read_window(meter)
  else
    meter.state = math.max(tonumber(redis.call('GET', key) or 0), now)
  end
  meters[i] = meter
end

for first = 1, #ARGV, #KEYS + 1 do
  local longest, by = 0, 0
  for i, meter in ipairs(meters) do
    local wanted = demand(ARGV[first + i])
    local wait = meter.state + wanted.amount - wanted.allowance
    if meter.window then
      wait = wait_in_window(meter, wait)
    else
      wait = wait - now
    end
    if wait > longest then
      longest, by = wait, i
    end
  end
  local answer = {'0', text(by), text(longest)}
  if by == 0 then
    answer = {'1', text(now)}
    for i, meter in ipairs(meters) do
      local amount = demand(ARGV[first + i]).amount
      meter.state = meter.state + amount
      meter.charged = true
      answer[i + 2] = text(meter.state)
      if meter.window then
        table.insert(meter.entries, text(meter.stamp))
        table.insert(meter.entries, ARGV[first] .. ':' .. text(amount))
      end
    end
  end
  table.insert(answers, table.concat(answer, ' '))
end

for _, meter in ipairs(meters) do
  if meter.charged and meter.window then
    redis.call('ZADD', meter.key, text(-meter.state), 'total', unpack(meter.entries))
    redis.call('PEXPIRE', meter.key, text(math.ceil(meter.period / 1000) + 1))
  elseif meter.charged then
    redis.call('SET', meter.key, text(meter.state), 'PX', text(math.ceil((meter.state - now) / 1000) + 1))
  end
end
return table.concat(answers, '\\n')
""",
)

SETTLE = Script(
    "settle",
    """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local answers = {}

local function text(number)
  return string.format('%.0f', number)
end

local function change_bucket(key, before, after, mark)
  local full_at = tonumber(redis.call('GET', key) or 0)
  local moved
  if after > before then
    moved = math.max(full_at, mark) + after - before
  else
    -- What has come in since the charge cannot be given back: a full bucket would run over.
    moved = full_at - math.min(before - after, math.max(mark - now, 0))
  end
  if moved > now then
    redis.call('SET', key, text(moved), 'PX', text(math.ceil((moved - now) / 1000) + 1))
  else
    redis.call('DEL', key)
  end
  return 1
end

local function change_entry(key, id, before, after, undone)
  local member = id .. ':' .. text(before)
  local stamp = redis.call('ZSCORE', key, member)
  if not stamp then
    return 0
  end
  local total = -redis.call('ZSCORE', key, 'total') + after - before
  redis.call('ZADD', key, text(-total), 'total')
  redis.call('ZREM', key, member)
  if not undone then
    redis.call('ZADD', key, stamp, id .. ':' .. text(after)) -- also 0: a better number may follow
  end
  return 1
end

for first = 1, #ARGV, #KEYS + 1 do
  local changed = 0
  for i, key in ipairs(KEYS) do
    local kind, old, new, state = string.match(ARGV[first + i], '^(%a+) (%d+) (%d+) (%d+)$')
    local before, after = tonumber(old), tonumber(new)
    if kind == 'gcra' then
      changed = changed + change_bucket(key, before, after, tonumber(state))
    else
      changed = changed + change_entry(key, ARGV[first], before, after, kind == 'undo')
    end
  end
  table.insert(answers, text(changed))
end
return table.concat(answers, '\\n')
""",
)
