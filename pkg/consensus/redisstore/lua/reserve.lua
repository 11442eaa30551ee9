-- One reservation, as Record.Reserve of package driver does it, for every single
-- permit: it looks at no row, and uses none of the functions of the other scripts,
-- whose making alone would cost as much as a step. Names are those of permit.lua.
-- KEYS: the pool, the marker of its group.
-- ARGV: how many slots, their spacing in nanoseconds, how many ahead, the revision seen
-- in two parts, of ten digits the second, freeze time in microseconds, the name to give
-- the data's life if the server is durable, else empty, when the request expires as in
-- expiry.lua, and if something is given back its revision in two parts and how many slots of it.
-- Reply: 'expired' and the server's time as text if it has expired, nothing when there is no record, else how many slots, time, revision in two
-- parts and spacing, and then the wait in microseconds and the nanoseconds beyond them,
-- or for 0 slots: 1 if there is something to give back, retry in microseconds, 1 while
-- issuing, rest of the freeze, its cause.

local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
if ARGV[8] ~= '0' and now > tonumber(ARGV[8]) then return { 'expired', string.format('%.0f', now) } end

local floor, max = math.floor, math.max
local packed = redis.pcall('HGET', KEYS[1], 'permits')
local high, low, last_clock, wall, frozen_until, frozen_since, lease, rows, claims, issuing, named, held, hold, step,
  left, serial_high, serial_low, last, last_ns, spacing_until, strict_until, shares_until, store, cause
if packed and packed.err then
  return packed
elseif packed and #packed > 177 and string.sub(packed, -1) == '\0' then
  high, low, last_clock, wall, frozen_until, frozen_since, lease, rows, claims, issuing, named, held, hold, step,
    left, serial_high, serial_low, last, last_ns, spacing_until, strict_until, shares_until, store, cause =
    struct.unpack('<ddddddddddddddddddddddss', packed)
elseif packed then
  return redis.error_reply('NUMATHROTTLE_DATA the permits are not of format 1')
else
  local meta = redis.call('HGET', KEYS[1], 'meta')
  if not meta then
    if redis.call('HLEN', KEYS[1]) > 0 then return redis.error_reply('NUMATHROTTLE_DATA the hash is not a pool') end
    return {}
  end
  local revision
  store, revision, last_clock, wall, frozen_until, frozen_since, cause, lease, rows, claims =
    string.match(meta, '^1 (%w+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%d+) (%d+) (%d+) %d+ %d+ %d+ %d+$')
  if not store then return redis.error_reply('NUMATHROTTLE_DATA the pool is not of format 1') end
  high, low = tonumber(string.sub(revision, 1, -11)) or 0, tonumber(string.sub(revision, -10))
  last_clock, wall, frozen_until, frozen_since = tonumber(last_clock), tonumber(wall), tonumber(frozen_until), tonumber(frozen_since)
  lease, rows, claims = tonumber(lease), tonumber(rows), tonumber(claims)
  issuing, named, held, hold, step, left, serial_high, serial_low, last, last_ns = 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
  spacing_until, strict_until, shares_until = 0, 0, 0
end

local clock, passed = last_clock, now - wall
if passed > 0 and passed <= lease * 250 then clock = clock + passed end

-- Which life of the server is this? Nothing cheaper than INFO tells.
local identity, life = store, ARGV[7]
if life == '' then
  local info = redis.pcall('INFO', 'server')
  if type(info) ~= 'string' then return redis.error_reply('NUMATHROTTLE_INFO ' .. tostring(info.err)) end
  if not string.find(info, 'run_id:' .. store, 1, true) then
    identity = string.match(info, 'run_id:(%w+)')
    if not identity then return redis.error_reply('NUMATHROTTLE_INFO no run_id in INFO server') end
  end
else
  local marker = redis.pcall('GET', KEYS[2])
  if type(marker) == 'table' then return redis.error_reply('NUMATHROTTLE_GET ' .. tostring(marker.err)) end
  identity = marker and string.match(marker, '^1 (%w+) ') or life
end

-- Has the store forgotten something?
local seen_high, seen_low = tonumber(ARGV[4]), tonumber(ARGV[5])
local behind = high < seen_high or (high == seen_high and low < seen_low)
local forgot = behind or store ~= identity
local changed = forgot
if forgot then
  if frozen_until <= clock then frozen_since = clock end
  cause = store ~= identity and 'store_identity' or 'older_record'
  frozen_until = max(frozen_until, clock + ARGV[6])
  if behind then high, low = seen_high, seen_low end
elseif frozen_until <= clock then
  cause = '-'
end
low = low + 1
if low == 1e10 then high, low = high + 1, 0 end

local spacing, ahead = max(tonumber(ARGV[2]), named), tonumber(ARGV[3])
local own = tonumber(ARGV[2]) -- what is named may be larger, and soon count no more
local ns = own % 1000
local window, window_ns = ahead * ((own - ns) / 1000) + floor(ahead * ns / 1000), ahead * ns % 1000
if frozen_until > clock or frozen_until ~= held then
  local longest = max(hold, frozen_until + math.ceil(spacing / 1000)) -- further is for the syncs to tell
  changed = changed or longest ~= hold or frozen_until ~= held
  hold, held = longest, frozen_until
end

local back_high = ARGV[9]
if back_high and not forgot then -- else another reservation may have the name by now
  local unused = max(tonumber(ARGV[11]), 1)
  if serial_low == tonumber(ARGV[10]) and serial_high == tonumber(back_high) and unused <= left then
    local step_ns = step % 1000
    local back_ns = last_ns - unused * step_ns
    last, last_ns = last - unused * ((step - step_ns) / 1000) + floor(back_ns / 1000), back_ns % 1000
    left, serial_high, serial_low, changed = left - unused, high, low, true
    if left == 0 then serial_high, serial_low = 0, 0 end
  end
end

-- The permits' claim, and the spacing in force.
local force = 0
if issuing == 1 and frozen_until <= clock then
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
  local us, count, limit = (force - ns) / 1000, tonumber(ARGV[1]), clock + window
  local slot, slot_ns, least = last + us, last_ns + ns, max(clock, hold)
  if slot_ns >= 1000 then slot, slot_ns = slot + 1, slot_ns - 1000 end
  if slot < least or last == 0 then slot, slot_ns = least, 0 end
  wait, wait_ns = slot - clock, slot_ns
  while granted < count and (slot < limit or (slot == limit and slot_ns <= window_ns)) do
    granted, last, last_ns = granted + 1, slot, slot_ns
    slot, slot_ns = slot + us, slot_ns + ns
    if slot_ns >= 1000 then slot, slot_ns = slot + 1, slot_ns - 1000 end
  end
  if granted > 0 then
    step, left, serial_high, serial_low, changed = force, granted, high, low, true
  else
    retry = max(wait - window + math.ceil((wait_ns - window_ns) / 1000), 1000)
  end
else
  retry = max(math.min(max(lease * 100, rows * 1e4), lease * 250), max(frozen_until, hold) - clock)
end

if changed then
  redis.call('HSET', KEYS[1], 'permits', struct.pack('<ddddddddddddddddddddddss', high, low, clock, now, frozen_until,
    frozen_since, lease, rows, claims, issuing, named, held, hold, step, left, serial_high, serial_low, last, last_ns,
    spacing_until, strict_until, shares_until, identity, cause))
elseif low > 0 then
  low = low - 1
else
  high, low = high - 1, 1e10 - 1
end
if granted > 0 then return { granted, clock, high, low, force, wait, wait_ns } end
return { 0, clock, high, low, force, changed and serial_low == low and serial_high == high and 1 or 0, retry, issuing,
  max(frozen_until - clock, 0), cause }
