-- What the record says of permits, as the Issuer of package consensus: the field
-- 'permits', which is packed, because reserve.lua reads and writes it for every
-- permit, and meta not at all. What both hold counts as permits has it:
--   numbers (doubles): revision (two), clock, wall, frozen_until, frozen_since, lease, rows,
--     claims, issuing, spacing, held, hold, reach, step, count, serial (two), last,
--     last_ns, spacing_until, strict_until, shares_until
--   text: store, cause
-- Revisions are in two parts, of ten digits the second, and so is last: microseconds, and
-- the nanoseconds beyond them. Spacings are in nanoseconds.

local PERMITS_FORMAT, PERMITS_BYTES = '<dddddddddddddddddddddddss', 23 * 8
local MAX_SPAN = 1003 * 744 * 3600 * 1e6 -- how far ahead slots can lie

-- A decimal number of up to 64 bits in two halves that doubles hold exactly.
local function halves(u) return tonumber(string.sub(u, 1, -11)) or 0, tonumber(string.sub(u, -10)) end

local function joined(high, low)
  if high == 0 then return string.format('%.0f', low) end
  return string.format('%.0f%010.0f', high, low)
end

-- Reads the field into the record. Returns false if it is malformed.
local function load_permits(rec, packed)
  if #packed < PERMITS_BYTES + 2 or string.sub(packed, -1) ~= '\0' then return false end
  local p, high, low, serial_high, serial_low = {}, 0, 0, 0, 0
  high, low, rec.clock, rec.wall, rec.frozen_until, rec.frozen_since, rec.lease, rec.rows, rec.claims, p.issuing, p.spacing,
    p.held, p.hold, p.reach, p.step, p.count, serial_high, serial_low, p.last, p.last_ns, p.spacing_until, p.strict_until,
    p.shares_until, rec.store, rec.cause = struct.unpack(PERMITS_FORMAT, packed)
  rec.revision, p.serial_high, p.serial_low, rec.permits = joined(high, low), serial_high, serial_low, p
  return true
end

local function permits_text(rec)
  local p = rec.permits
  local high, low = halves(rec.revision)
  return struct.pack(PERMITS_FORMAT, high, low, rec.clock, rec.wall, rec.frozen_until, rec.frozen_since, rec.lease, rec.rows,
    rec.claims, p.issuing, p.spacing, p.held, p.hold, p.reach, p.step, p.count, p.serial_high, p.serial_low, p.last,
    p.last_ns, p.spacing_until, p.strict_until, p.shares_until, rec.store, rec.cause)
end

-- Makes a fact count for another removal time. It is not written anew by every step.
local function keep(st, until_then)
  if until_then < st.clock + st.removal * 0.75 then return st.clock + st.removal end
  return until_then
end

-- Notes what a sync says of permits, and decides whether the pool issues them; see
-- step.issue in package consensus. Tells whether it does, and if not, whether shares
-- must not grow because permits are still good.
local function issue(rec, st, spacing, strict)
  local p = rec.permits
  if spacing == 0 and (not p or p.spacing == 0) then return false, false end
  if not p then
    p = {
      issuing = 0, spacing = 0, held = 0, hold = 0, reach = 0, step = 0, count = 0, serial_high = 0, serial_low = 0, last = 0,
      last_ns = 0, spacing_until = 0, strict_until = 0, shares_until = 0,
    }
    rec.permits = p
  end
  if spacing == 0 then
    p.shares_until = keep(st, p.shares_until)
  elseif spacing > p.spacing or (spacing < p.spacing and st.clock >= p.spacing_until) then
    p.spacing, p.spacing_until = spacing, st.clock + st.removal
  elseif spacing == p.spacing then
    p.spacing_until = keep(st, p.spacing_until)
  end
  if strict then p.strict_until = keep(st, p.strict_until) end

  -- In nanoseconds, as Interval in package consensus.
  local interval = math.min(math.max(rec.lease * 1e5, rec.rows * 1e7), rec.lease * 250000)
  if st.clock < p.strict_until then
    p.issuing = 1
  elseif st.clock < p.shares_until or st.clock >= p.spacing_until then
    p.issuing = 0
  elseif p.spacing > math.floor(interval / rec.rows) then
    p.issuing = 1
  elseif p.spacing <= math.floor((interval - 1) / (2 * rec.rows)) then
    p.issuing = 0
  end

  if (p.issuing == 1 or p.last > 0) and (rec.frozen_until > st.clock or rec.frozen_until ~= p.held) then
    local reach = math.min(p.reach - rec.frozen_since, MAX_SPAN)
    p.hold = math.max(p.hold, rec.frozen_until + math.max(math.ceil(p.spacing / 1000), reach))
    p.held = rec.frozen_until
  end
  if p.issuing == 1 or p.last == 0 then return p.issuing == 1, false end
  local newest, newest_ns = p.last, p.last_ns
  if p.hold > newest then newest, newest_ns = p.hold, 0 end
  local validity = math.max(math.floor(p.step / 10), 250000000)
  local void = newest + math.floor(validity / 1000) + math.ceil((newest_ns + validity % 1000) / 1000)
  return false, st.clock < void
end
