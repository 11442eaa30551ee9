-- One sync, as Record.Sync of package driver does it.
-- KEYS: the pool, the marker of its group, the buckets of the pool, and unless the sender has no quotas the buckets of names and their sketch.
-- ARGV: id, incarnation, seq, nonce, last_seq, last_time, revision, lease in
-- milliseconds, freeze time in microseconds, 1 to be told the eviction policy, the
-- requests remembered (see sent_by), the name to give the data's life if the server
-- is durable, else empty, spacing of the limit in nanoseconds, the document that it is by or
-- empty, 1 if strict, how far ahead slots are reserved in microseconds, how long ago a
-- share may have been granted that is still in use in microseconds, the number of documents, the number of incarnations
-- that are dead, when the request expires (see expiry.lua), for each of the dead: its name, and the
-- requests that it had sent; for each document: name, version, base, body; and at last: in_use, wanted, demand,
-- pool_size, note (with what is busy behind a zero byte, if anything is), the slots of tags (see tagslots.lua), the document that their totals are by or empty, what is drawn (see
-- serve_draws), and the keys of the buckets that it is drawn from, in eight bytes.
-- Reply: what became of the request, and if it was granted: time, revision, lease,
-- rest of the freeze, its cause, policy, names and values of all fields in turn, of a
-- document that is as reported without the body, when the pool began, and how long it
-- had slept, what is drawn (see serve_draws), the server's time, and what is granted of tags (see tag_answer); if the record is behind: number and nonce of the newest
-- request; if the request has expired: the server's time.

local id, own = ARGV[1], ARGV[1] .. '\0' .. ARGV[2]
local seq, nonce, last_seq, last_time = ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local seen_revision, lease, freeze_time = ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[9])
local wants_policy, remembered, life = ARGV[10] == '1', ARGV[11], ARGV[12]
local spacing, spacing_by, strict = tonumber(ARGV[13]), ARGV[14], ARGV[15] == '1'
local reach, lasting, documents, first_dead = tonumber(ARGV[16]), tonumber(ARGV[17]), tonumber(ARGV[18]), 21
local first_document = first_dead + 2 * tonumber(ARGV[19])
local report = first_document + 4 * documents
local in_use, wanted = tonumber(ARGV[report]), tonumber(ARGV[report + 1])
local demand, pool_size, note = ARGV[report + 2], ARGV[report + 3], ARGV[report + 4]
local slots, slots_by = ARGV[report + 5], ARGV[report + 6]
local blob, first_draw, draws = ARGV[report + 7], report + 8, #ARGV - report - 7
local WHOLE = 1000000000

local asked = document_fields(first_document, documents)
asked[#asked + 1] = BUCKETS
asked[#asked + 1] = NAMES
local rec, got = load_record(own, asked)
if not rec then return got end
local st = begin(rec, lease)

-- To join a large pool costs much. Who wants to is told the server's time first, so that a join expires as well.
local LARGE = 64
if ARGV[20] == '0' and not rec.row and rec.rows >= LARGE then return { 'expired', number(st.now) } end

local function granted(seen, drawn, value)
  local policy = wants_policy and eviction_policy(server_info('memory') or '') or ''
  local fields = redis.call('HGETALL', KEYS[1])
  if shorten_documents(fields, first_document, documents) then cut_claims(fields) end
  return { 'granted', seen, rec.revision, number(rec.lease), number(math.max(rec.frozen_until - rec.clock, 0)), rec.cause,
    policy, fields, rec.began, rec.slept, drawn, number(rec.wall), slots ~= '' and tag_answer(rec, slots, value) or '' }
end

-- Decides on a request of an incarnation that gets no answers any more.
local function judge_unanswered()
  if #siblings(rec, st, id) > 0 then return 'replaced' end
  return 'removed'
end

local function judge()
  local row = rec.row
  if not row or gone(st, row.seen) then
    if last_seq == '0' then return 'accept' end
    if not less(rec.revision, seen_revision) and st.clock - last_time >= st.removal then return judge_unanswered() end
    return 'lost_row'
  end
  if row.state == CLONED then return 'cloned' end
  if row.state ~= LIVE then return judge_unanswered() end
  if seq == row.seq and nonce == row.nonce then return 'repeat' end
  if less(seq, row.seq) then return 'late' end
  if seq == row.seq then return 'clone' end
  local known = sent_by(row, remembered)
  if less(row.seq, last_seq) then return known and 'lost_row' or 'behind' end
  return known and 'accept' or 'clone'
end

-- Tells whether nothing newer is on record of a document than the sender has loaded.
local function newest_of(name)
  for i = 1, documents do
    local at = first_document + 4 * (i - 1)
    if name ~= '' and ARGV[at] == name then return not less(ARGV[at + 1], version_of(got[i + 3])) end
  end
  return false
end

local function frozen() return rec.frozen_until > st.clock end

-- Stops the growth of shares for a freeze time; never shortens a freeze.
local function freeze(cause)
  if not frozen() then rec.frozen_since = st.clock end
  rec.cause = cause
  rec.frozen_until = math.max(rec.frozen_until, st.clock + freeze_time)
end

local verdict = judge()
if verdict == 'repeat' then return granted(rec.row.seen, '', rec.own_value) end
if verdict == 'replaced' then
  -- Time goes on, or a replaced processor alone in its pool would wait for ever.
  local silent, problem = advance(rec, st)
  if not silent then return problem end
  save_record(rec, {}, silent)
end
if verdict == 'replaced' or verdict == 'late' or verdict == 'removed' or verdict == 'cloned' then return { verdict } end

local identity, is_new, marker, failure
identity, failure = server_identity(life)
if not identity then return failure end
if rec.revision == '0' or rec.store ~= identity then
  is_new, marker, failure = known_new(identity, st.now, lasting)
  if failure then return failure end
end

local newest = verdict == 'accept' and rec.row and rec.row.seq == last_seq
local buckets, lost_buckets = {}, false
if verdict == 'accept' or verdict == 'lost_row' then
  buckets, lost_buckets = load_buckets(got[documents + 4], got[documents + 5], first_draw, draws)
  if not buckets then return lost_buckets end
end
local older = less(rec.revision, seen_revision)
local forgot = older or verdict == 'lost_row'
local silence = rec.wall > 0 and math.max(st.now - rec.wall, 0) or 0
local silent, problem = advance(rec, st)
if not silent then return problem end
if rec.revision == '0' and not is_new then
  freeze('new_record')
elseif rec.revision ~= '0' and rec.store ~= identity then
  freeze('store_identity')
elseif older then
  freeze('older_record')
elseif verdict == 'lost_row' or verdict == 'behind' then
  freeze(frozen() and rec.cause or 'lost_row') -- it may have been noticed first by another sign
elseif not frozen() then
  rec.cause = NONE
end
if lost_buckets then freeze('new_record') end
rec.store = identity
if older then rec.revision = seen_revision end

local function save(changed)
  save_record(rec, changed, silent)
  if marker then
    redis.call('SET', KEYS[2], marker, 'PX', MARKER_EXPIRY)
  else
    redis.call('PEXPIRE', KEYS[2], MARKER_EXPIRY)
  end
end

if verdict == 'behind' then
  -- The sender may use what the store has forgotten: nobody else may grow, and the
  -- facts count. What the row claims counts as well: it may be that of a clone.
  local row = rec.row
  local used, answered, its_demand, its_size, its_note =
    string.match(rec.own_value, '^%d %d+ %d+ %d+ %d+ (%d+) (%d+) (%d+) (%d+)%+?%d* (.*)$')
  if not used then return wrong_row(own) end
  local claims = claims_of(rec.own_value)
  its_size, its_note = with_claims(its_size, with_facts(claims, slots), string.sub(its_note, #claims + 1))
  local more = math.max(tonumber(used), in_use)
  local text, claim = row_text(LIVE, row.seen, row.seq, row.nonce, more, tonumber(answered), its_demand, its_size, its_note)
  rec.claims = rec.claims - row.claim + claim
  count_claims(rec, rec.own_value, -1)
  count_claims(rec, text, 1)
  save({ own, text })
  return { 'behind', rec.row.seq, rec.row.nonce }
end
if verdict == 'clone' then
  -- The claim stays for one removal time: both processes may draw on it.
  local clone = CLONED .. string.sub(rec.own_value, 2)
  count_claims(rec, rec.own_value, -1)
  count_claims(rec, clone, 1)
  save({ own, clone })
  return { 'cloned' }
end

if rec.rows == 0 then rec.oldest = st.clock end
local empty = not rec.row and not any_live(rec, st)
if rec.claims == 0 and empty and not any_claims(rec, st) then rec.lease = lease end
if forgot then
  rec.began, rec.slept = '0', '0' -- the pool is older than what is on record, or another one
elseif empty then
  rec.began, rec.slept = number(math.max(st.clock, rec.began + 1)), number(silence)
end

-- A new incarnation closes every other one of its ID; their claims stay until removal.
local changed, now = {}, {}
-- Closes a row with a new value, the last of which counts. Tells whether anything could be made of the old one.
local function close(field, old, value)
  local known = count_claims(rec, now[field] or old, -1) and count_claims(rec, value, 1)
  changed[#changed + 1], changed[#changed + 2], now[field] = field, value, value
  return known
end
if not rec.row then
  local others = siblings(rec, st, id)
  for i = 1, #others, 2 do
    if not close(others[i], others[i + 1], REPLACED .. string.sub(others[i + 1], 2)) then return wrong_row(others[i]) end
  end
  rec.rows = rec.rows + 1
else
  rec.claims = rec.claims - rec.row.claim
  count_claims(rec, rec.own_value, -1)
end

-- What a dead incarnation claims is free at once, and its row stays; that of a clone is
-- closed with its claim. See step.bury in package driver.
for i = first_dead, first_document - 1, 2 do
  local field = id .. '\0' .. ARGV[i]
  local value = redis.call('HMGET', KEYS[1], field)[1]
  if value then
    local dead = {}
    dead.state, dead.seen, dead.claim, dead.seq, dead.nonce = string.match(value, '^(%d) (%d+) (%d+) (%d+) (%d+) ')
    if not dead.state then return wrong_row(field) end
    if (dead.state == LIVE or dead.state == REPLACED) and not gone(st, dead.seen) then
      local closed = CLONED .. string.sub(value, 2)
      if sent_by(dead, ARGV[i + 1]) then
        rec.claims = rec.claims - dead.claim
        closed = empty_row(REPLACED, dead.seen, dead.seq, dead.nonce)
      end
      if not close(field, value, closed) then return wrong_row(field) end
    end
  end
end

-- Facts first: what is reported in use is the claim, even beyond the whole. Then
-- the answer is what there is room for. A frozen pool lets nothing grow.
local issuing, winding = issue(rec, st, spacing, newest_of(spacing_by), strict, reach, id)
if issuing == nil then return wrong('the permits are not of format 1') end
local function allowed(used, wants)
  if issuing then return 0 end
  if frozen() then return used end
  return winding and math.min(wants, used) or wants
end
local answered = math.min(allowed(in_use, wanted), math.max(WHOLE - rec.claims, 0))
local seen = number(st.clock)
pool_size, note = with_claims(pool_size, grant_tags(rec, slots, allowed, slots_by ~= '' and not newest_of(slots_by)), note)
local text, claim = row_text(LIVE, seen, seq, nonce, in_use, answered, demand, pool_size, note)
changed[#changed + 1] = own
changed[#changed + 1] = text
rec.claims = rec.claims + claim
count_claims(rec, text, 1)

for i = 1, documents do
  local at = first_document + 4 * (i - 1)
  take_document(rec, got[i + 3], changed, ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
end

local drawn, written, dropped = '', {}, {}
if draws > 0 then
  drawn, written, dropped = serve_draws(rec, st, buckets, blob, first_draw, draws, freeze_time, newest and not forgot, last_time)
  note_buckets(buckets, written, changed)
end
save(changed)
save_buckets(rec, buckets, written, dropped)
return granted(seen, drawn, text)
