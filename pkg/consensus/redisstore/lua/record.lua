-- The record of a pool, as a hash: the field 'meta', the field 'permits' (see
-- permit.lua) once there is something to say of permits, one field per row whose
-- name is the processor's ID, a zero byte and the incarnation, the documents (see
-- document.lua), and one that says that there are buckets (see tagbuckets.lua). What is busy stands behind the note
-- and a zero byte. Values are decimal numbers and names separated by blanks:
--   meta: 1 store revision clock wall frozen_until frozen_since cause lease
--         rows claims oldest began slept documents
--   row:  state last_seen claim seq nonce in_use answered demand pool_size note
-- Slots of tags stand in front of the note, and their sums in fields of their own; see tagclaims.lua.
-- A row's claim is the larger of in_use and answered, and 0 with nothing but zeros and
-- an empty note behind it once nothing can be in use. The claims of meta are the sum over
-- all rows, and no row was seen before oldest: most steps need to look at no row but
-- their own.
--
-- Times are in microseconds, the lease in milliseconds, shares in 1e-9; all of
-- them are exact in Lua's doubles. Revisions, sequence numbers and nonces have 64
-- bits, which doubles have not: they stay text.
--
-- A step reads and judges first and writes last, because what a script has
-- written before an error stays.

local META, PERMITS, NONE = 'meta', 'permits', '-'
local LIVE, REPLACED, CLONED, LEFT = '0', '1', '2', '3'
local POOL_EXPIRY, MARKER_EXPIRY = 86400000, 43200000 -- in milliseconds
local DOCUMENTS_EXPIRY = 604800000 -- of a pool that has any: a week

local function number(n) return string.format('%.0f', n) end

local function wrong(what) return redis.error_reply('NUMATHROTTLE_DATA ' .. what) end

local function less(a, b)
  local a1, a2 = halves(a)
  local b1, b2 = halves(b)
  return a1 < b1 or (a1 == b1 and a2 < b2)
end

-- What to do about a row that nothing can be made of: nobody knows what it claims.
local function wrong_row(field)
  return wrong('a row is not of format 1: ' .. string.gsub(field, '%c', '/') ..
    "; delete the pool's key " .. KEYS[1] .. ', then the pool begins anew, with a freeze')
end

-- Fields that name neither a row nor anything else that is known are left alone.
local function is_row(field)
  local zero = string.find(field, '\0', 1, true)
  return zero and zero > 1 and zero < #field
end

local function successor(u)
  if u == '18446744073709551615' then return '0' end
  local high, low = halves(u)
  low = low + 1
  if low == 1e10 then high, low = high + 1, 0 end
  if high == 0 then return number(low) end
  return string.format('%.0f%010.0f', high, low)
end

-- Tells whether the newest request on record is one of those that the process
-- remembers to have sent: they are listed as ' seq:nonce seq:nonce '.
local function sent_by(row, remembered)
  return string.find(remembered, ' ' .. row.seq .. ':' .. row.nonce .. ' ', 1, true) ~= nil
end

-- Reads the record as far as most steps need it. own is the field of the row that
-- the step is about, empty for none, and asked lists fields of documents. Returns also
-- the values of meta, the row, the permits and these documents, in turn; or nil and a
-- reply when there is something else under the key.
local function load_record(own, asked)
  local got = redis.pcall('HMGET', KEYS[1], META, own, PERMITS, unpack(asked))
  if got.err then return nil, got end
  local meta, value = got[1], got[2]
  if not meta then
    if redis.call('HLEN', KEYS[1]) > 0 then return nil, wrong('the hash is not a pool') end
    return {
      own = own, store = '', revision = '0', clock = 0, wall = 0, frozen_until = 0, frozen_since = 0,
      cause = NONE, lease = 0, rows = 0, claims = 0, oldest = 0, began = '0', slept = '0', documents = 0,
    }, got
  end
  local store, revision, clock, wall, frozen_until, frozen_since, cause, lease, rows, claims, oldest, began, slept, count =
    string.match(meta, '^1 (%w+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  if not store then return nil, wrong('the pool is not of format 1') end
  local rec = {
    own = own, own_value = value, store = store, revision = revision, cause = cause, clock = tonumber(clock),
    wall = tonumber(wall), frozen_until = tonumber(frozen_until),
    frozen_since = tonumber(frozen_since), lease = tonumber(lease), rows = tonumber(rows), claims = tonumber(claims),
    oldest = tonumber(oldest), began = began, slept = slept, documents = tonumber(count),
  }
  if got[3] and not load_permits(rec, got[3]) then return nil, wrong('the permits are not of format 1') end
  if value then
    local row = {}
    row.state, row.seen, row.claim, row.seq, row.nonce = string.match(value, '^(%d) (%d+) (%d+) (%d+) (%d+) ')
    if not row.state or not claims_of(value) then return nil, wrong_row(own) end
    rec.row = row
  end
  return rec, got
end

-- The value of a row. in_use and answered are numbers, all else is text.
local function row_text(state, seen, seq, nonce, in_use, answered, demand, pool_size, note)
  local claim = math.max(in_use, answered)
  local head = string.format('%s %s %.0f %s %s %.0f %.0f %s %s ', state, seen, claim, seq, nonce, in_use, answered, demand, pool_size)
  return head .. note, claim
end

-- The value of a row of whose share nothing can be in use.
local function empty_row(state, seen, seq, nonce)
  return (row_text(state, seen, seq, nonce, 0, 0, '0', '0', ''))
end

-- Works out the logical time of a step; see Record.begin in package driver.
local function begin(rec, lease)
  local now = server_time()
  if rec.rows > 0 then lease = rec.lease end
  local removal, clamp = lease * 1500, lease * 250 -- 1.5 leases and a quarter, from ms to us
  local st = { now = now, clock = rec.clock, removal = removal }
  if rec.wall == 0 then
    st.clock = now -- the first step of all
    return st
  end
  local d = now - rec.wall
  if d > 0 and d <= clamp then st.clock = st.clock + d end
  return st
end

local function gone(st, seen) return st.clock - seen > st.removal end

-- All names and values in turn, as they were before the step.
local function all_fields(rec)
  if not rec.fields then rec.fields = redis.call('HGETALL', KEYS[1]) end
  return rec.fields
end

-- Lists names and values in turn of the live rows of id's other incarnations.
local function siblings(rec, st, id)
  local fields, prefix, found = all_fields(rec), id .. '\0', {}
  for i = 1, #fields, 2 do
    local field, value = fields[i], fields[i + 1]
    if field ~= rec.own and string.sub(field, 1, #prefix) == prefix then
      local state, seen = string.match(value, '^(%d) (%d+) ')
      if state == LIVE and not gone(st, seen) then
        found[#found + 1] = field
        found[#found + 1] = value
      end
    end
  end
  return found
end

-- Tells whether any processor is live.
local function any_live(rec, st)
  if rec.rows == 0 then return false end
  local fields = all_fields(rec)
  for i = 1, #fields, 2 do
    local state, seen = string.match(fields[i + 1], '^(%d) (%d+) ')
    if is_row(fields[i]) and state == LIVE and not gone(st, seen) then return true end
  end
  return false
end

-- Moves the record on to the time of the step. Returns the names of the rows that
-- are removed, or nil and a reply if one is malformed. Unsets the own row if it is
-- one of them.
local function advance(rec, st)
  rec.clock, rec.wall = st.clock, st.now
  local silent = {}
  if rec.rows == 0 or not gone(st, rec.oldest) then return silent end
  local fields, match = all_fields(rec), string.match
  rec.rows, rec.claims, rec.oldest = 0, 0, st.clock
  for i = 1, #fields, 2 do
    if is_row(fields[i]) then
      local seen, claims = match(fields[i + 1], '^%d (%d+) (%d+) ')
      if not seen then return nil, wrong_row(fields[i]) end
      seen = tonumber(seen)
      if gone(st, seen) then
        silent[#silent + 1] = fields[i]
        if not count_claims(rec, fields[i + 1], -1) then return nil, wrong_row(fields[i]) end
        if fields[i] == rec.own then rec.row = nil end
      else
        rec.rows, rec.claims = rec.rows + 1, rec.claims + claims
        if seen < rec.oldest then rec.oldest = seen end
      end
    end
  end
  return silent
end

-- Writes meta and the rows in changed, a list of names and values in turn, and
-- deletes the silent rows, but not the own one if it is written anew. The first
-- write is one that a server without memory refuses.
local function save_record(rec, changed, silent)
  local own_stays = #changed > 0
  rec.revision = successor(rec.revision)
  local meta = string.format('1 %s %s %.0f %.0f %.0f %.0f %s %.0f %.0f %.0f %.0f %s %s %d', rec.store, rec.revision, rec.clock,
    rec.wall, rec.frozen_until, rec.frozen_since, rec.cause, rec.lease, rec.rows, rec.claims, rec.oldest, rec.began, rec.slept,
    rec.documents)
  if rec.permits then
    changed[#changed + 1] = PERMITS
    changed[#changed + 1] = permits_text(rec)
  end
  redis.call('HSET', KEYS[1], META, meta, unpack(changed))
  save_sums(rec)
  for _, field in ipairs(silent) do
    if field ~= rec.own or not own_stays then redis.call('HDEL', KEYS[1], field) end
  end
  redis.call('PEXPIRE', KEYS[1], rec.documents > 0 and DOCUMENTS_EXPIRY or POOL_EXPIRY)
end
