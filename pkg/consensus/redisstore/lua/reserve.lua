-- One reservation, as Record.Reserve of package consensus does it, for every single
-- permit: it looks at no row, keeps as text what does not change, and uses none of
-- the functions of the other scripts, whose making alone would cost more than a step.
-- KEYS: the pool, the marker of its group.
-- ARGV: how many slots, their spacing in nanoseconds, how many ahead, revision seen,
-- what is given back (a revision, or 0) and how many slots of it, freeze time in
-- microseconds, the name to give the data's life if the server is durable, else empty.
-- Reply: nothing when there is no record, else how many
-- slots, time, revision and spacing, and then the wait in microseconds and the nanoseconds
-- beyond them, or for 0 slots: 1 if there is something to give back, retry in
-- microseconds, 1 while issuing, rest of the freeze, its cause.

local count, spacing, ahead, seen, unused = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[6])
local floor, max, format = math.floor, math.max, string.format

local meta = redis.pcall('HGET', KEYS[1], 'meta')
if not meta then
  if redis.call('HLEN', KEYS[1]) > 0 then return redis.error_reply('NUMATHROTTLE_DATA the hash is not a pool') end
  return {}
end
if meta.err then return meta end
if not string.find(meta, ' P ', 1, true) then meta = meta .. ' P 0 0 0 0 0 0 0 0 0 0 0 0000' end
-- The names are those of record.lua and permit.lua.
local store, revision, clock, wall, frozen_until, frozen_since, cause, lease, rest, rows, claims, issuing, named, untils,
  held, hold, reach, step, left, serial, last, last_ns = string.match(meta,
  '^1 (%w+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%d+)( (%d+) (%d+) %d+) P ([01]) (%d+)( %d+ %d+ %d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)(%d%d%d)$')
if not store then return redis.error_reply('NUMATHROTTLE_DATA the pool is not of format 1') end

-- The time. Whoever does not give it the name of a life that goes on asks the server.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local last_clock = tonumber(clock)
local passed = now - wall
clock, lease = last_clock, tonumber(lease)
if passed > 0 and passed <= lease * 250 then clock = clock + passed end
local identity = ARGV[8]
if identity ~= '' then
  local marker = redis.pcall('GET', KEYS[2])
  if type(marker) == 'table' then return marker end
  identity = marker and string.match(marker, '^1 (%w+) ') or identity
else
  local info = redis.pcall('INFO', 'server')
  if type(info) ~= 'string' then return redis.error_reply('NUMATHROTTLE_INFO ' .. tostring(info.err)) end
  identity = store
  if not string.find(info, 'run_id:' .. store .. '\r', 1, true) then
    identity = string.match(info, 'run_id:(%w+)')
    if not identity then return redis.error_reply('NUMATHROTTLE_INFO no run_id in INFO server') end
  end
end

-- Has the store forgotten something?
local frozen = tonumber(frozen_until)
local behind = #revision < #seen or (#revision == #seen and revision < seen)
local changed = store ~= identity or behind
if changed then
  if frozen <= clock then frozen_since = format('%.0f', clock) end
  cause = store ~= identity and 'store_identity' or 'older_record'
  frozen = max(frozen, clock + ARGV[7])
  frozen_until = format('%.0f', frozen)
  if behind then revision = seen end
elseif frozen <= clock then
  cause = '-'
end

spacing = max(spacing, tonumber(named))
local ns = spacing % 1000
local window, window_ns = ahead * ((spacing - ns) / 1000) + floor(ahead * ns / 1000), ahead * ns % 1000
if frozen > clock or frozen_until ~= held then
  -- Slots that are forgotten can lie as far ahead as those who ask reserve, or have.
  local horizon = window + math.ceil((window_ns + spacing) / 1000)
  local longest = max(tonumber(hold), frozen + max(horizon, math.min(reach - frozen_since, 1003 * 744 * 3600 * 1e6)))
  changed = changed or longest ~= tonumber(hold) or frozen_until ~= held
  hold, held = format('%.0f', longest), frozen_until
end

local next_revision
if #revision < 15 then
  next_revision = format('%.0f', revision + 1)
else -- 64 bits are more than a number holds here
  local high, low = tonumber(string.sub(revision, 1, -11)) or 0, tonumber(string.sub(revision, -10)) + 1
  if low == 1e10 then high, low = high + 1, 0 end
  next_revision = format('%.0f%010.0f', high, low)
end

last, last_ns = tonumber(last), tonumber(last_ns)
if serial == ARGV[5] and serial ~= '0' and max(unused, 1) <= tonumber(left) then
  unused = max(unused, 1)
  local step_ns = step % 1000
  local back_ns = last_ns - unused * step_ns
  last = last - unused * ((step - step_ns) / 1000) + floor(back_ns / 1000)
  last_ns = back_ns % 1000
  left = left - unused
  serial = left > 0 and next_revision or '0'
  changed = true
end

-- The issuer's claim, and the spacing in force.
local force = 0
if issuing == '1' and frozen <= clock then
  local claim = 1000000000 - claims
  if claim == 1000000000 then
    force = spacing
  elseif claim >= 333333334 then
    force = (floor(spacing * 1e6 / claim) + 1) * 1000
  end
end

-- The slots: the first that there can be, and as many more as are not too far away.
local granted, wait, wait_ns, retry = 0, 0, 0, 0
if force > 0 then
  ns = force % 1000
  local us = (force - ns) / 1000
  local slot, slot_ns, least = last + us, last_ns + ns, max(clock, tonumber(hold))
  if slot_ns >= 1000 then slot, slot_ns = slot + 1, slot_ns - 1000 end
  if last == 0 or slot < least then slot, slot_ns = least, 0 end
  local limit = clock + window
  wait, wait_ns = slot - clock, slot_ns
  while granted < count and (slot < limit or (slot == limit and slot_ns <= window_ns)) do
    granted, last, last_ns = granted + 1, slot, slot_ns
    slot, slot_ns = slot + us, slot_ns + ns
    if slot_ns >= 1000 then slot, slot_ns = slot + 1, slot_ns - 1000 end
  end
  if granted > 0 then
    step, left, serial, changed = format('%.0f', force), granted, next_revision, true
    reach = format('%.0f', max(tonumber(reach), limit + math.ceil((window_ns + force) / 1000)))
  else
    retry = max(wait - window + math.ceil((wait_ns - window_ns) / 1000), 1000)
    wait, wait_ns = 0, 0
  end
else
  retry = max(math.min(max(lease * 100, rows * 1e4), lease * 250), max(frozen, tonumber(hold)) - clock)
end

if changed then
  revision = next_revision
  meta = format('1 %s %s %.0f %.0f %s %s %s %.0f%s P %s %s%s %s %s %s %s %s %s %.0f%03.0f', identity, revision, clock, now,
    frozen_until, frozen_since, cause, lease, rest, issuing, named, untils, held, hold, reach, step, left, serial, last, last_ns)
  redis.call('HSET', KEYS[1], 'meta', meta)
end
if granted > 0 then return { granted, clock, revision, force, wait, wait_ns } end
return { 0, clock, revision, force, changed and serial == revision and 1 or 0, retry, issuing == '1' and 1 or 0,
  max(frozen - clock, 0), cause }
