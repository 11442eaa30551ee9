-- How the record decides between shares and permits; see step.issue in package
-- consensus.

-- The time between two syncs of one of n processors, in nanoseconds; see Interval.
local function interval_of(rec, n) return math.min(math.max(rec.lease * 1e5, n * 1e7), rec.lease * 250000) end

-- Tells whether the limit earns less than a token for each of n per interval.
local function earns_less(rec, p, n) return p.spacing > math.floor(interval_of(rec, n) / n) end

-- Counts the live processors, id among them.
local function live_with(rec, st, id)
  local fields, prefix, n = all_fields(rec), id .. '\0', 1
  for i = 1, #fields, 2 do
    local field = fields[i]
    if is_row(field) and string.sub(field, 1, #prefix) ~= prefix then
      local state, seen = string.match(fields[i + 1], '^(%d) (%d+) ')
      if state == LIVE and not gone(st, seen) then n = n + 1 end
    end
  end
  return n
end

-- Makes a fact count for another removal time. It is not written anew by every step.
local function keep(st, until_then)
  if until_then < st.clock + st.removal * 0.75 then return st.clock + st.removal end
  return until_then
end

-- Notes what a sync says of permits, and decides whether the pool issues them; see
-- step.issue in package driver. by_newest says that the spacing is by the newest version
-- of a document. Tells whether the pool does, and if not, whether shares must not grow
-- because permits are still good.
local function issue(rec, st, spacing, by_newest, strict, reach, id)
  local p = rec.permits
  if spacing == 0 and (not p or p.spacing == 0) then return false, false end
  if not p then
    p = {
      issuing = 0, spacing = 0, held = 0, hold = 0, step = 0, count = 0, serial_high = 0, serial_low = 0, last = 0,
      last_ns = 0, spacing_until = 0, strict_until = 0, shares_until = 0,
    }
    rec.permits = p
  end
  if spacing == 0 then
    p.shares_until = keep(st, p.shares_until)
  elseif spacing > p.spacing or (spacing < p.spacing and (by_newest or st.clock >= p.spacing_until)) then
    p.spacing, p.spacing_until = spacing, st.clock + st.removal
  elseif spacing == p.spacing then
    p.spacing_until = keep(st, p.spacing_until)
  end
  if strict then p.strict_until = keep(st, p.strict_until) end

  if st.clock < p.strict_until then
    p.issuing = 1
  elseif st.clock < p.shares_until or st.clock >= p.spacing_until then
    p.issuing = 0
  elseif p.issuing == 0 then
    -- No more are live than there are rows, which are counted.
    if earns_less(rec, p, rec.rows) and earns_less(rec, p, live_with(rec, st, id)) then p.issuing = 1 end
  elseif p.spacing <= math.floor((interval_of(rec, rec.rows) - 1) / (2 * rec.rows)) then
    p.issuing = 0
  end

  if (p.issuing == 1 or p.last > 0) and (rec.frozen_until > st.clock or rec.frozen_until ~= p.held) then
    p.hold = math.max(p.hold, rec.frozen_until + math.ceil(p.spacing / 1000) + reach)
  end
  if p.issuing == 1 or p.last == 0 then return p.issuing == 1, false end
  local newest, newest_ns = p.last, p.last_ns
  if p.hold > newest then newest, newest_ns = p.hold, 0 end
  local validity = math.min(math.max(math.floor(p.step / 10), 250000000), 2500000000)
  local void = newest + math.floor(validity / 1000) + math.ceil((newest_ns + validity % 1000) / 1000)
  return false, st.clock < void
end
