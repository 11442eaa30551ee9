-- The record of a pool, as a hash: the field 'meta', and one field per row whose
-- name is the processor's ID, a zero byte and the incarnation. Values are
-- decimal numbers and names separated by blanks:
--   meta: 1 store revision clock wall jumped_until frozen_until frozen_since cause lease
--   row:  state last_seen claims seq nonce ack_seq ack_nonce tags, and for each
--         tag: in_use answered demand pool_size length tag
-- claims is the sum over the tags of the larger of in_use and answered.
-- Times are in microseconds, the lease in milliseconds, shares in 1e-9; all of
-- them are exact in Lua's doubles. Revisions, sequence numbers and nonces have 64
-- bits, which doubles have not: they stay text.
--
-- A step reads and judges first and writes last, because what a script has
-- written before an error stays.

local META, NONE = 'meta', '-'
local LIVE, REPLACED, CLONED, LEFT = '0', '1', '2', '3'
local ROW = '^(%d) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) '

local function number(n) return string.format('%.0f', n) end

local function wrong(what) return redis.error_reply('NUMATHROTTLE_DATA ' .. what) end

-- A decimal number of up to 64 bits in two halves that doubles hold exactly.
local function halves(u) return tonumber(string.sub(u, 1, -11)) or 0, tonumber(string.sub(u, -10)) end

local function less(a, b)
  local a1, a2 = halves(a)
  local b1, b2 = halves(b)
  return a1 < b1 or (a1 == b1 and a2 < b2)
end

local function successor(u)
  if u == '18446744073709551615' then return '0' end
  local high, low = halves(u)
  low = low + 1
  if low == 1e10 then high, low = high + 1, 0 end
  if high == 0 then return number(low) end
  return string.format('%.0f%010.0f', high, low)
end

-- Reads the record. own is the field of the row that the step is about; fields
-- holds names and values in turn. Returns nil and a reply when there is something
-- else under the key.
local function load_record(own)
  local got = redis.pcall('HMGET', KEYS[1], META, own)
  if got.err then return nil, got end
  local rec = {
    own = own, own_value = got[2], fields = redis.call('HGETALL', KEYS[1]), store = '', revision = '0',
    clock = 0, wall = 0, jumped = 0, frozen_until = 0, frozen_since = 0, cause = NONE, lease = 0,
  }
  if not got[1] then
    if #rec.fields > 0 then return nil, wrong('the hash is not a pool') end
    return rec
  end
  local store, revision, clock, wall, jumped, frozen_until, frozen_since, cause, lease =
    string.match(got[1], '^1 (%w+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%d+)$')
  if not store then return nil, wrong('the pool is not of format 1') end
  rec.store, rec.revision, rec.cause = store, revision, cause
  rec.clock, rec.wall, rec.jumped = tonumber(clock), tonumber(wall), tonumber(jumped)
  rec.frozen_until, rec.frozen_since, rec.lease = tonumber(frozen_until), tonumber(frozen_since), tonumber(lease)
  if rec.own_value then
    local row = {}
    row.state, row.seen, row.claims, row.seq, row.nonce, row.ack_seq, row.ack_nonce = string.match(rec.own_value, ROW)
    if not row.state then return nil, wrong('a row is not of format 1') end
    rec.row = row
  end
  return rec
end

-- Works out the logical time of a step; see Record.begin in package consensus.
local function begin(rec, lease)
  local now = server_time()
  if #rec.fields > 2 then lease = rec.lease end
  local removal, clamp = lease * 1500, lease * 250 -- 1.5 leases and a quarter, from ms to us
  local st = { now = now, clock = rec.clock, jumped = rec.jumped, removal = removal }
  if rec.wall == 0 then
    st.clock = now -- the first step of all
    return st
  end
  local d = now - rec.wall
  if d > 0 and d <= clamp then
    st.clock = st.clock + d
  elseif d > clamp and st.clock >= st.jumped then
    st.clock = st.clock + clamp
    st.jumped = st.clock + removal
  end
  return st
end

local function gone(st, seen) return st.clock - seen > st.removal end

-- Lists the places in rec.fields of the live rows of id's other incarnations.
local function siblings(rec, st, id)
  local fields, prefix, found = rec.fields, id .. '\0', {}
  for i = 1, #fields, 2 do
    local value = fields[i + 1]
    if value and fields[i] ~= rec.own and string.sub(fields[i], 1, #prefix) == prefix then
      local state, seen = string.match(value, '^(%d) (%d+) ')
      if state == LIVE and not gone(st, seen) then found[#found + 1] = i end
    end
  end
  return found
end

-- Drops the values of the other rows that are silent from rec.fields. Returns the
-- names of their fields, the claims of the other rows and how many of those are
-- left; or nil and a reply when one is malformed. Notes the place of the own row.
local function sweep(rec, st)
  local fields, own, match, limit = rec.fields, rec.own, string.match, st.clock - st.removal
  local silent, claimed, left = {}, 0, 0
  for i = 1, #fields, 2 do
    local field = fields[i]
    if field == own then
      rec.own_place = i
    elseif field ~= META then
      local seen, claims = match(fields[i + 1], '^%d (%d+) (%d+) ')
      if not seen then return nil, wrong('a row is not of format 1') end
      if tonumber(seen) < limit then
        silent[#silent + 1] = field
        fields[i + 1] = false
      else
        left, claimed = left + 1, claimed + claims
      end
    end
  end
  return silent, claimed, left
end

-- Moves the record on to the time of the step.
local function advance(rec, st) rec.clock, rec.wall, rec.jumped = st.clock, st.now, st.jumped end

-- Writes meta and the rows in changed, a list of names and values in turn, and
-- deletes the silent rows. The first write is one that a server without memory refuses.
local function save_record(rec, changed, silent)
  rec.revision = successor(rec.revision)
  local meta = string.format('1 %s %s %.0f %.0f %.0f %.0f %.0f %s %.0f', rec.store, rec.revision, rec.clock, rec.wall,
    rec.jumped, rec.frozen_until, rec.frozen_since, rec.cause, rec.lease)
  redis.call('HSET', KEYS[1], META, meta, unpack(changed))
  for _, field in ipairs(silent) do redis.call('HDEL', KEYS[1], field) end
  redis.call('PEXPIRE', KEYS[1], 86400000)
end
