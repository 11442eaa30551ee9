-- What the record says of permits, as the Permits of package driver: the field
-- 'permits', which is packed, because reserve.lua reads and writes it for every
-- permit, and meta not at all. What both hold counts as permits has it:
--   numbers (doubles): revision (two), clock, wall, frozen_until, frozen_since, lease, rows,
--     claims, issuing, spacing, held, hold, step, count, serial (two), last,
--     last_ns, spacing_until, strict_until, shares_until
--   text: store, cause
-- Revisions are in two parts, of ten digits the second, and so is last: microseconds, and
-- the nanoseconds beyond them. Spacings are in nanoseconds.

local PERMITS_FORMAT, PERMITS_BYTES = '<ddddddddddddddddddddddss', 22 * 8

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
    p.held, p.hold, p.step, p.count, serial_high, serial_low, p.last, p.last_ns, p.spacing_until, p.strict_until,
    p.shares_until, rec.store, rec.cause = struct.unpack(PERMITS_FORMAT, packed)
  rec.revision, p.serial_high, p.serial_low, rec.permits = joined(high, low), serial_high, serial_low, p
  return true
end

local function permits_text(rec)
  local p = rec.permits
  local high, low = halves(rec.revision)
  return struct.pack(PERMITS_FORMAT, high, low, rec.clock, rec.wall, rec.frozen_until, rec.frozen_since, rec.lease, rec.rows,
    rec.claims, p.issuing, p.spacing, p.held, p.hold, p.step, p.count, p.serial_high, p.serial_low, p.last,
    p.last_ns, p.spacing_until, p.strict_until, p.shares_until, rec.store, rec.cause)
end
