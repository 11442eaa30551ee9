-- What the record says of permits, as the Issuer of package consensus: the end of
-- meta, which is missing while there is nothing to say:
--   P issuing spacing spacing_until strict_until shares_until held hold reach step
--     count serial last
-- Spacings are in nanoseconds, exact in Lua's doubles, and so is last, which is not:
-- it stays text here. All else is in microseconds. serial is a revision, and text.

local MAX_SPAN = 1003 * 744 * 3600 * 1e6 -- how far ahead slots can lie

-- Reads the end of meta. Returns nil if it is malformed.
local function parse_permits(text)
  if text == '' then
    return {
      issuing = false, spacing = 0, spacing_until = 0, strict_until = 0, shares_until = 0, held = 0, hold = 0, reach = 0,
      step = 0, rest = '0 0', last = '0000',
    }
  end
  local issuing, spacing, spacing_until, strict_until, shares_until, held, hold, reach, step, rest, last =
    string.match(text, '^ P ([01]) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+ %d+) (%d%d%d%d+)$')
  if not issuing then return nil end
  return {
    issuing = issuing == '1', spacing = tonumber(spacing), spacing_until = tonumber(spacing_until),
    strict_until = tonumber(strict_until), shares_until = tonumber(shares_until), held = tonumber(held),
    hold = tonumber(hold), reach = tonumber(reach), step = tonumber(step), rest = rest, last = last,
  }
end

local function permits_text(p)
  return string.format(' P %s %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %s %s', p.issuing and '1' or '0', p.spacing,
    p.spacing_until, p.strict_until, p.shares_until, p.held, p.hold, p.reach, p.step, p.rest, p.last)
end

-- Makes a fact count for another removal time. It is not written anew by every step.
local function keep(st, until_then)
  if until_then < st.clock + st.removal * 0.75 then return st.clock + st.removal end
  return until_then
end

-- Notes what a sync says of permits, and decides whether the pool issues them; see
-- step.issue in package consensus. Tells whether shares may not grow, though it does not,
-- because permits are still good.
local function issue(rec, st, spacing, strict)
  if spacing == 0 and rec.permits == '' then return false, false end
  local p = parse_permits(rec.permits)
  if not p then return nil end
  if spacing == 0 and p.spacing == 0 then return false, false end
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
    p.issuing = true
  elseif st.clock < p.shares_until or st.clock >= p.spacing_until then
    p.issuing = false
  elseif p.spacing > math.floor(interval / rec.rows) then
    p.issuing = true
  elseif p.spacing <= math.floor((interval - 1) / (2 * rec.rows)) then
    p.issuing = false
  end

  local newest = tonumber(string.sub(p.last, 1, -4))
  if (p.issuing or p.last ~= '0000') and (rec.frozen_until > st.clock or rec.frozen_until ~= p.held) then
    local reach = math.min(p.reach - rec.frozen_since, MAX_SPAN)
    p.hold = math.max(p.hold, rec.frozen_until + math.max(math.ceil(p.spacing / 1000), reach))
    p.held = rec.frozen_until
  end
  rec.permits = permits_text(p)
  if p.issuing or p.last == '0000' then return p.issuing, false end
  -- Compared in whole microseconds: the validity and the newest slot both round.
  local validity = math.max(math.floor(p.step / 10), 250000000)
  local newest_ns = tonumber(string.sub(p.last, -3))
  if p.hold > newest then newest, newest_ns = p.hold, 0 end
  local beyond = newest_ns + validity % 1000
  local over = newest + (validity - validity % 1000) / 1000 + math.ceil(beyond / 1000)
  return false, st.clock < over
end
