-- The buckets of a pool: a hash of its own, with a field per bucket. Its name is the key in eight bytes, big endian, and its
-- value, packed: the version, in eight bytes as well, paid, full, and start, end and tokens of each budget window. It counts
-- only while the pool's hash has the field BUCKETS. A step that draws nothing reads none of them. See granter in
-- package driver, which does the same in the same order.
--
-- The buckets of names that go by a pattern are in a second hash of that form, which counts while the pool's hash has the field NAMES: 1
-- once anything is known of dropped ones, else 0. That is a third hash: a cell's index in two bytes, and its end and value,
-- packed. See Names in package driver.

local BUCKETS, MAX_BUCKETS, MAX_WINDOWS, KEEP_WINDOW = '\0tills', 2048, 6, 600000000
local NAMES, MAX_NAMES, SKETCH_COLS, FIRST_PAID = '\0names', 4096, 8192, 16384
local MAX_LEAD, MAX_SPENT = 2686435200000000, 4000000000000000
local DRAW, BUCKET = '<c8ddddddddd', '<c8dd'
local BUCKET_BYTES, WINDOW_BYTES = 24, 24
local NO_WINDOWS = {}
local NOTHING, BY_TOTAL, BY_BUDGET, BY_WINDOW, BY_FREEZE, BY_VERSION, BY_TABLE = 0, 1, 2, 3, 4, 5, 6

-- Reads the values of ARGV[first] and the following out of a hash. Returns them and whether one is missing, or nil and a reply.
local function load_values(key, first, count)
  local values = redis.call('HMGET', key, unpack(ARGV, first, first + count - 1))
  local missing = false
  for i = 1, count do
    local value = values[i]
    if not value then
      missing = true
    elseif #value < BUCKET_BYTES or (#value - BUCKET_BYTES) % WINDOW_BYTES ~= 0 then
      return nil, wrong('a tag bucket is not of format 1')
    end
  end
  return values, missing
end

-- Reads the buckets that a request draws from; ARGV[first] and the following are their keys, names is the value of the field NAMES. Returns them, and
-- whether they are lost though the pool had some; or nil and a reply.
local function load_buckets(exist, names, first, count)
  local buckets = { values = {}, n = 0, exist = exist, names = {}, m = 0, said = names, dropped = {}, gone = {}, raised = {}, swept = 0 }
  local missing, lost
  if names then
    if names ~= '0' and names ~= '1' then return nil, wrong('the names are not of format 1') end
    buckets.cells = names == '1'
  end
  if count == 0 then return buckets, false end
  if exist then
    buckets.values, missing = load_values(KEYS[3], first, count)
    if not buckets.values then return nil, missing end
    if missing then buckets.n = redis.call('HLEN', KEYS[3]) end
    lost = missing and buckets.n == 0
  end
  if names then
    buckets.names, missing = load_values(KEYS[4], first, count)
    if not buckets.names then return nil, missing end
    if missing then buckets.m = redis.call('HLEN', KEYS[4]) end
    lost = lost or (missing and buckets.m == 0)
    if buckets.cells and redis.call('HLEN', KEYS[5]) == 0 then lost, buckets.cells = true, false end
  end
  return buckets, lost or false
end

-- The windows of a bucket's value: start, end and tokens in turn.
local function windows_of(value)
  local windows, pos = {}, BUCKET_BYTES + 1
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

-- Finds the bucket that is worth least among those that the request does not draw from: it has been full for longest, and
-- knows no window that has not ended. Returns its key, or nil.
local function dispensable(buckets, st, first, count)
  if not buckets.others then
    local drawn = {}
    for i = first, first + count - 1 do drawn[ARGV[i]] = true end
    local all = redis.call('HGETALL', KEYS[3])
    buckets.others = {}
    for i = 1, #all, 2 do
      if not drawn[all[i]] then
        local _, _, full = struct.unpack(BUCKET, all[i + 1])
        local kept = full > st.clock
        if not kept then
          local windows = windows_of(all[i + 1])
          for k = 2, #windows, 3 do kept = kept or windows[k] > st.now end
        end
        if not kept then buckets.others[all[i]] = full end
      end
    end
  end
  local best, best_full
  for key, full in pairs(buckets.others) do
    if not best or full < best_full or (full == best_full and below(key, best)) then best, best_full = key, full end
  end
  if best then buckets.others[best] = nil end
  return best
end

-- The fields of the cells of a name: for the window that begins at start, or for its total.
local function spent_cells(key, start, first)
  local low, shift = struct.unpack('>I4', string.sub(key, 5)), math.floor(start / 900000000)
  local one, two = (low + shift) % SKETCH_COLS, (math.floor(low / SKETCH_COLS) + shift) % SKETCH_COLS
  return struct.pack('>I2', (first or 0) + one), struct.pack('>I2', (first or 0) + SKETCH_COLS + two)
end

local function paid_cells(key) return spent_cells(key, 0, FIRST_PAID) end

-- Tells whether a cell is of no account any more.
local function dead(field, stop, st)
  if struct.unpack('>I2', field) < FIRST_PAID then return stop + KEEP_WINDOW <= st.now end
  return stop <= st.clock
end

-- The end and the value of a cell as it stands in the hash, zeros if it is dead.
local function cell_of(field, value, st)
  if not value then return 0, 0 end
  local stop, n = struct.unpack('<dd', value)
  if dead(field, stop, st) then return 0, 0 end
  return stop, n
end

-- What two cells say; see granter.least.
local function least_of(buckets, st, one, two)
  if not buckets.cells and not next(buckets.raised) then return 0 end
  local values = buckets.cells and redis.call('HMGET', KEYS[5], one, two) or {}
  local least = math.huge
  for i, field in ipairs({ one, two }) do
    local _, n = cell_of(field, values[i], st)
    local raised = buckets.raised[field]
    least = math.min(least, math.max(n, raised and raised[2] or 0))
  end
  return least
end

-- Notes the value of two cells that are to be raised.
local function raise(buckets, st, stop, n, one, two)
  stop = math.ceil(stop / 60000000) * 60000000
  for _, field in ipairs({ one, two }) do
    if not dead(field, stop, st) then
      local cell = buckets.raised[field] or { 0, 0 }
      buckets.raised[field] = { math.max(cell[1], stop), math.max(cell[2], n) }
    end
  end
end

-- Drops buckets of names; see granter.sweep.
local function sweep(buckets, st, first, count, others)
  local drawn, all = {}, redis.call('HGETALL', KEYS[4])
  for i = first, first + count - 1 do drawn[ARGV[i]] = true end
  for i = 1, #all, 2 do
    local key, value = all[i], all[i + 1]
    local _, paid, full = struct.unpack(BUCKET, value)
    if not drawn[key] and not buckets.gone[key] and (others or full <= st.clock) then
      if full > st.clock then raise(buckets, st, full, math.ceil(paid / 1000) * 1000, paid_cells(key)) end
      local windows = windows_of(value)
      for k = 1, #windows, 3 do
        if windows[k + 2] > 0 then raise(buckets, st, windows[k + 1], windows[k + 2], spent_cells(key, windows[k])) end
      end
      buckets.gone[key], buckets.m = true, buckets.m - 1
      buckets.dropped[#buckets.dropped + 1] = key
    end
  end
end

-- Makes room for the bucket of a name, and tells whether there is any.
local function room_for_name(buckets, st, first, count)
  while buckets.m >= MAX_NAMES and buckets.swept < 2 do
    sweep(buckets, st, first, count, buckets.swept == 1)
    buckets.swept = buckets.swept + 1
  end
  if buckets.m >= MAX_NAMES then return false end
  buckets.m = buckets.m + 1
  return true
end

-- The names and values in turn of the cells that are to be written.
local function raised_cells(buckets, st)
  local fields, written = {}, {}
  for name in pairs(buckets.raised) do fields[#fields + 1] = name end
  for i = 1, #fields, 4000 do
    local last = math.min(i + 3999, #fields)
    local values = buckets.cells and redis.call('HMGET', KEYS[5], unpack(fields, i, last)) or {}
    for k = i, last do
      local stop, n = cell_of(fields[k], values[k - i + 1], st)
      local raised = buckets.raised[fields[k]]
      written[#written + 1] = fields[k]
      written[#written + 1] = struct.pack('<dd', math.max(stop, raised[1]), math.max(n, raised[2]))
    end
  end
  return written
end

-- Brings the windows of a bucket up to date; see granter.windows. Returns them, and whether the store's clock is in all
-- that the draw names. spent tells what is known of a window that the bucket does not know.
local function update_windows(value, budgets, now, held, spent)
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
      table.insert(windows, k, spent and math.max(seen, spent(start)) or seen)
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

-- Serves the draws of a request, of which numbers are packed in blob: version, 1 if it goes by a pattern, total, period in microseconds, burst, ask,
-- ahead in microseconds, back, owed, the number of budgets, and of each: amount, start, end, seen. newest tells
-- whether what is given back can count, and is worked out further here. Returns what is drawn, packed: of each
-- tokens, from, paid, lack, again, and spent of each budget; what is to be written, and what to be deleted.
local function serve_draws(rec, st, buckets, blob, first, count, freeze_time, newest, last_time)
  local clock, now, pack, read = st.clock, st.now, struct.pack, struct.unpack
  local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
  local lead, hold = floor(interval_of(rec, rec.rows) / 1000), held_until(rec, freeze_time)
  local held = hold > clock
  local back_counts = newest and not held and last_time >= hold
  local drawn, written, dropped, pos = {}, {}, {}, 1
  buckets.written = {}

  for i = 1, count do
    local key, value, budgets = ARGV[first + i - 1], buckets.values[i], {}
    local version, pattern, total, per, burst, ask, ahead, back, owed, n
    version, pattern, total, per, burst, ask, ahead, back, owed, n, pos = read(DRAW, blob, pos)
    pattern = pattern == 1
    for b = 1, 4 * n, 4 do
      budgets[b], budgets[b + 1], budgets[b + 2], budgets[b + 3], pos = read('<dddd', blob, pos)
    end

    local known, paid, full = version, clock, clock
    local there, into = true, written
    if not value and pattern then
      value, into = buckets.names[i], buckets.written
      if not value then
        there = room_for_name(buckets, st, first, count)
        if there then paid, full = least_of(buckets, st, paid_cells(key)), 0 end
      end
    elseif not value then
      if buckets.n >= MAX_BUCKETS then
        local old = dispensable(buckets, st, first, count)
        if old then dropped[#dropped + 1], buckets.n = old, buckets.n - 1 end
      end
      there = buckets.n < MAX_BUCKETS
      if there then buckets.n, value = buckets.n + 1, buckets.names[i] end
    end
    if value then known, paid, full = read(BUCKET, value) end

    local tokens, from, lack, again, windows = 0, 0, NOTHING, 0, nil
    if not there then
      lack = BY_TABLE
    else
      local older = version ~= known and below(version, known)
      local saved = 0 -- what the burst costs
      if total > 0 then
        saved = min(ceil(burst * per / total), MAX_LEAD)
        if owed > 0 then paid = paid + min(ceil(owed * per / total), MAX_LEAD) end
      end
      paid = max(paid, hold)
      if not older then
        known = version
        paid = max(paid, clock - saved)
      end
      paid = max(0, min(paid, clock + MAX_LEAD))

      local open = true
      windows = NO_WINDOWS
      if n > 0 or (value and #value > BUCKET_BYTES) then
        local spent = pattern and function(start) return least_of(buckets, st, spent_cells(key, start)) end or nil
        windows, open = update_windows(value, budgets, now, held, spent)
        spend(windows, budgets, back_counts and owed - back or owed)
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
        local late = 0
        if most < ask and ahead > 0 then
          from = paid - clock + asked
          late = from - ahead
          most = ask
        end
        if late > 0 then
          from, lack, again = 0, BY_TOTAL, max(min(late, MAX_LEAD), 1)
        else
          tokens = min(most, max(rest, 0))
          if ahead > 0 and tokens < ask then tokens, from = 0, 0 end
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

      local text = pack(BUCKET, known, paid, full)
      for k = 1, #windows, 3 do text = text .. pack('<ddd', windows[k], windows[k + 1], windows[k + 2]) end
      into[#into + 1] = key
      into[#into + 1] = text
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

-- Writes and deletes fields of a hash that counts already, or not. What is under the key and not the pool's goes first.
local function save_hash(key, exist, written, dropped, expiry)
  if #written > 0 then
    if not exist then
      redis.call('PEXPIRE', key, 0)
      -- A value that is too long for a small hash makes it a large one, in which no field is looked for through all others.
      redis.call('HSET', key, written[1], string.rep(' ', 65))
    end
    for i = 1, #written, 4000 do redis.call('HSET', key, unpack(written, i, math.min(i + 3999, #written))) end
    for i = 1, #dropped, 4000 do redis.call('HDEL', key, unpack(dropped, i, math.min(i + 3999, #dropped))) end
  end
  if #written > 0 or exist then redis.call('PEXPIRE', key, expiry) end
end

-- Adds to the fields of the pool's hash that a step writes what says that there are buckets.
local function note_buckets(buckets, written, changed)
  if not buckets.exist and #written > 0 then
    changed[#changed + 1] = BUCKETS
    changed[#changed + 1] = '1'
  end
  if buckets.said or (buckets.written and #buckets.written > 0) then
    local names = (buckets.cells or next(buckets.raised)) and '1' or '0'
    if names ~= buckets.said then
      changed[#changed + 1] = NAMES
      changed[#changed + 1] = names
    end
  end
end

-- Writes what serve_draws has returned.
local function save_buckets(rec, buckets, written, dropped)
  local expiry = rec.documents > 0 and DOCUMENTS_EXPIRY or POOL_EXPIRY
  save_hash(KEYS[3], buckets.exist, written, dropped, expiry)
  if not KEYS[4] then return end
  save_hash(KEYS[4], buckets.said, buckets.written or {}, buckets.dropped, expiry)
  save_hash(KEYS[5], buckets.cells, raised_cells(buckets, { now = rec.wall, clock = rec.clock }), {}, expiry)
end
