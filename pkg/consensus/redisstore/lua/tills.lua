-- The tills of a pool: a hash of its own, with a field per till. Its name is the key in eight bytes, big endian, and its
-- value, packed: the version, in eight bytes as well, paid, full, and start, end and tokens of each budget window. It counts
-- only while the pool's hash has the field TILLS. A step that draws nothing reads none of them. See teller in
-- package driver, which does the same in the same order.

local TILLS, MAX_TILLS, MAX_WINDOWS, KEEP_WINDOW = '\0tills', 1024, 6, 600000000
local MAX_LEAD, MAX_SPENT = 2686435200000000, 4000000000000000
local DRAW, TILL = '<c8dddddddddd', '<c8dd'
local TILL_BYTES, WINDOW_BYTES = 24, 24
local NO_WINDOWS = {}
local NOTHING, BY_TOTAL, BY_BUDGET, BY_WINDOW, BY_FREEZE, BY_VERSION, BY_TABLE = 0, 1, 2, 3, 4, 5, 6

-- Reads the tills that a request draws from; ARGV[first] and the following are their keys. Returns them, and whether they are
-- lost though the pool had some; or nil and a reply.
local function load_tills(exist, first, count)
  local tills = { values = {}, n = 0, exist = exist }
  if count == 0 or not exist then return tills, false end
  local values = redis.call('HMGET', KEYS[3], unpack(ARGV, first, first + count - 1))
  local missing = false
  for i = 1, count do
    local value = values[i]
    if not value then
      missing = true
    elseif #value < TILL_BYTES or (#value - TILL_BYTES) % WINDOW_BYTES ~= 0 then
      return nil, wrong('a till is not of format 1')
    end
  end
  tills.values = values
  if missing then tills.n = redis.call('HLEN', KEYS[3]) end
  return tills, missing and tills.n == 0
end

-- The windows of a till's value: start, end and tokens in turn.
local function windows_of(value)
  local windows, pos = {}, TILL_BYTES + 1
  while pos <= #value do
    local k = #windows
    windows[k + 1], windows[k + 2], windows[k + 3], pos = struct.unpack('<ddd', value, pos)
  end
  return windows
end

-- The place of the window that begins at start, or where it belongs.
local function window_at(windows, start)
  for k = 1, #windows, 3 do
    if windows[k] >= start then return k, windows[k] == start end
  end
  return #windows + 1, false
end

-- Tells whether a draw names a window that begins at start; budgets lists amount, start, end and seen in turn.
local function names(budgets, start)
  for b = 2, #budgets, 4 do
    if budgets[b] == start then return true end
  end
  return false
end

-- Adds tokens to the windows that a draw names, to each once.
local function spend(windows, budgets, tokens)
  for k = 1, #windows, 3 do
    if names(budgets, windows[k]) then windows[k + 2] = math.max(0, math.min(windows[k + 2] + tokens, MAX_SPENT)) end
  end
end

-- Tells whether the first of two keys, or versions, in eight bytes is below the second.
local function below(a, b)
  local a1, a2 = struct.unpack('>I4I4', a)
  local b1, b2 = struct.unpack('>I4I4', b)
  return a1 < b1 or (a1 == b1 and a2 < b2)
end

-- Finds the till that is worth least among those that the request does not draw from: it has been full for longest, and
-- knows no window that has not ended. Returns its key, or nil.
local function dispensable(tills, st, first, count)
  if not tills.others then
    local drawn = {}
    for i = first, first + count - 1 do drawn[ARGV[i]] = true end
    local all = redis.call('HGETALL', KEYS[3])
    tills.others = {}
    for i = 1, #all, 2 do
      if not drawn[all[i]] then
        local _, _, full = struct.unpack(TILL, all[i + 1])
        local kept = full > st.clock
        if not kept then
          local windows = windows_of(all[i + 1])
          for k = 2, #windows, 3 do kept = kept or windows[k] > st.now end
        end
        if not kept then tills.others[all[i]] = full end
      end
    end
  end
  local best, best_full
  for key, full in pairs(tills.others) do
    if not best or full < best_full or (full == best_full and below(key, best)) then best, best_full = key, full end
  end
  if best then tills.others[best] = nil end
  return best
end

-- Brings the windows of a till up to date; see teller.windows. Returns them, and whether the store's clock is in all
-- that the draw names.
local function update_windows(value, budgets, now, held)
  local windows, open = {}, true
  if value then
    local was = windows_of(value)
    for k = 1, #was, 3 do
      if was[k + 1] + KEEP_WINDOW > now or names(budgets, was[k]) then
        local at = #windows
        windows[at + 1], windows[at + 2], windows[at + 3] = was[k], was[k + 1], was[k + 2]
      end
    end
  end
  for b = 1, #budgets, 4 do
    local start, stop, seen = budgets[b + 1], budgets[b + 2], budgets[b + 3]
    local within = now >= start and now < stop
    open = open and within
    local k, known = window_at(windows, start)
    if known then
      windows[k + 1] = math.max(windows[k + 1], stop)
      if held then windows[k + 2] = math.max(windows[k + 2], seen) end
    elseif within then
      table.insert(windows, k, seen)
      table.insert(windows, k, stop)
      table.insert(windows, k, start)
    end
  end
  local k = 1
  while #windows > 3 * MAX_WINDOWS do
    if names(budgets, windows[k]) then
      k = k + 3
    else
      for _ = 1, 3 do table.remove(windows, k) end
    end
  end
  return windows, open
end

-- What is left of the budgets of a draw, and when the window of the one ends that has least.
local function rest_of(windows, budgets)
  local rest, stop = math.huge, 0
  for b = 1, #budgets, 4 do
    local left = budgets[b] - windows[window_at(windows, budgets[b + 1]) + 2]
    if left < rest then rest, stop = left, budgets[b + 2] end
  end
  return rest, stop
end

-- Until when, on the logical clock, nothing is earned after a freeze; see step.holdTime.
local function held_until(rec, freeze_time)
  if rec.frozen_until == 0 then return 0 end
  local n = 2 * rec.rows
  if rec.cause == 'new_record' or rec.cause == 'older_record' then n = 1000000 end
  local interval = math.floor(interval_of({ lease = freeze_time / 1500 }, n) / 1000)
  return rec.frozen_until - freeze_time + math.floor(2 * interval * 119 / 100)
end

-- Serves the draws of a request, of which numbers are packed in blob: version, total, period in microseconds, burst, ask,
-- ahead in microseconds, back, back_spent, back_paid, owed, the number of budgets, and of each: amount, start, end, seen. newest tells
-- whether what is given back can count, and is worked out further here. Returns what is drawn, packed: of each
-- tokens, from, paid, lack, again, and spent of each budget; what is to be written, and what to be deleted.
local function serve_draws(rec, st, tills, blob, first, count, freeze_time, newest, last_time)
  local clock, now, pack, read = st.clock, st.now, struct.pack, struct.unpack
  local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
  local lead, hold = floor(interval_of(rec, rec.rows) / 1000), held_until(rec, freeze_time)
  local held = hold > clock
  local back_counts = newest and not held and last_time >= hold
  local drawn, written, dropped, pos = {}, {}, {}, 1

  for i = 1, count do
    local key, value, budgets = ARGV[first + i - 1], tills.values[i], {}
    local version, total, per, burst, ask, ahead, back, back_spent, back_paid, owed, n
    version, total, per, burst, ask, ahead, back, back_spent, back_paid, owed, n, pos = read(DRAW, blob, pos)
    for b = 1, 4 * n, 4 do
      budgets[b], budgets[b + 1], budgets[b + 2], budgets[b + 3], pos = read('<dddd', blob, pos)
    end

    local known, paid, full = version, clock, clock
    local there = true
    if value then
      known, paid, full = read(TILL, value)
    else
      if tills.n >= MAX_TILLS then
        local old = dispensable(tills, st, first, count)
        if old then dropped[#dropped + 1], tills.n = old, tills.n - 1 end
      end
      there = tills.n < MAX_TILLS
      if there then tills.n = tills.n + 1 end
    end

    local tokens, from, lack, again, windows = 0, 0, NOTHING, 0, nil
    if not there then
      lack = BY_TABLE
    else
      local older = version ~= known and below(version, known)
      local saved = 0 -- what the burst costs
      if total > 0 then
        saved = min(ceil(burst * per / total), MAX_LEAD)
        local credit = 0 -- see teller.credit
        if back > 0 and back_counts and back_paid > clock and (back_paid <= clock + lead or back_paid == paid) then
          credit = min(floor(back * per / total), MAX_LEAD, back_paid - clock)
        end
        if owed > 0 then paid = paid + min(ceil(owed * per / total), MAX_LEAD) end
        paid = paid - credit
      end
      paid = max(paid, hold)
      if not older then
        known = version
        paid = max(paid, clock - saved)
      end
      paid = max(0, min(paid, clock + MAX_LEAD))

      local open = true
      windows = NO_WINDOWS
      if n > 0 or (value and #value > TILL_BYTES) then
        windows, open = update_windows(value, budgets, now, held)
        spend(windows, budgets, back_counts and owed - back_spent or owed)
      end

      if held then
        lack, again = BY_FREEZE, max(hold - clock, 1)
      elseif older then
        lack = BY_VERSION
      elseif not open then
        lack = BY_WINDOW
      else
        local rest, stop = math.huge, 0
        if n > 0 then rest, stop = rest_of(windows, budgets) end
        local asked, most = 0, ask
        if total > 0 then
          local room = clock + lead - paid
          asked = ceil(ask * per / total)
          if asked > room then
            most = room > 0 and min(floor(room * total / per), ask) or 0
            while most > 0 and ceil(most * per / total) > room do most = most - 1 end
          end
        end
        local whole, late = most < ask and ahead > 0, 0
        if whole then
          from = paid - clock + asked
          late = from - ahead
          most = ask
        end
        if late > 0 then
          from, lack, again = 0, BY_TOTAL, max(min(late, MAX_LEAD), 1)
        else
          tokens = min(most, max(rest, 0))
          if whole and tokens < ask then tokens, from = 0, 0 end
          if total > 0 then paid = paid + min(ceil(tokens * per / total), MAX_LEAD) end
          if n > 0 then spend(windows, budgets, tokens) end
          if tokens < ask and rest <= most then
            lack, again = BY_BUDGET, max(min(stop - now, MAX_LEAD), 1)
          elseif tokens < ask then
            lack, again = BY_TOTAL, max(min(paid - clock - lead + ceil(per / total), MAX_LEAD), 1)
          end
        end
      end
      full = older and max(full, paid) or paid + saved

      local text = pack(TILL, known, paid, full)
      for k = 1, #windows, 3 do text = text .. pack('<ddd', windows[k], windows[k + 1], windows[k + 2]) end
      written[#written + 1] = key
      written[#written + 1] = text
    end

    drawn[#drawn + 1] = pack('<ddddd', tokens, from, there and paid or 0, lack, again)
    for b = 2, #budgets, 4 do
      local spent = 0
      if windows then
        local k, found = window_at(windows, budgets[b])
        if found then spent = windows[k + 2] end
      end
      drawn[#drawn + 1] = pack('<d', spent)
    end
  end
  return table.concat(drawn), written, dropped
end

-- Writes what serve_draws has returned. What is under the key and not the pool's goes first.
local function save_tills(rec, tills, written, dropped)
  if #written > 0 then
    if not tills.exist then
      redis.call('PEXPIRE', KEYS[3], 0)
      -- A value that is too long for a small hash makes it a large one, in which no field is looked for through all others.
      redis.call('HSET', KEYS[3], written[1], string.rep(' ', 65))
    end
    redis.call('HSET', KEYS[3], unpack(written))
    if #dropped > 0 then redis.call('HDEL', KEYS[3], unpack(dropped)) end
  end
  if #written > 0 or tills.exist then
    redis.call('PEXPIRE', KEYS[3], rec.documents > 0 and DOCUMENTS_EXPIRY or POOL_EXPIRY)
  end
end
