-- One sync, as Record.Sync of package consensus does it.
-- KEYS: the pool, the marker of its group.
-- ARGV: id, incarnation, seq, nonce, last_seq, last_nonce, last_time, revision,
-- lease in milliseconds, freeze time in microseconds, 1 to be told the eviction
-- policy, unanswered and oldest (see sent_by), the name to give the data's life
-- if the server is durable, else empty, and for each tag: tag, in_use, wanted, demand,
-- pool_size.
-- Reply: what became of the request, and if it was granted: time, revision, lease,
-- rest of the freeze, its cause, policy, and names and values of all fields in turn.

local id, own = ARGV[1], ARGV[1] .. '\0' .. ARGV[2]
local seq, nonce, last_seq, last_nonce = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local last_time, seen_revision, lease = tonumber(ARGV[7]), ARGV[8], tonumber(ARGV[9])
local freeze_time, wants_policy = tonumber(ARGV[10]), ARGV[11] == '1'
local unanswered, oldest, life, first_tag = ARGV[12], ARGV[13], ARGV[14], 15
local WHOLE = 1000000000

local rec, failure = load_record(own)
if not rec then return failure end
local st = begin(rec, lease)

local function granted(seen)
  local policy = wants_policy and eviction_policy(server_info('memory') or '') or ''
  return { 'granted', seen, rec.revision, number(rec.lease), number(math.max(rec.frozen_until - rec.clock, 0)), rec.cause,
    policy, redis.call('HGETALL', KEYS[1]) }
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
  if less(row.seq, last_seq) then return 'lost_row' end
  if sent_by(row, last_seq, last_nonce, unanswered, oldest) then return 'accept' end
  return 'clone'
end

local function frozen() return rec.frozen_until > st.clock end

-- Stops the growth of shares for a freeze time; never shortens a freeze.
local function freeze(cause)
  if not frozen() then rec.frozen_since = st.clock end
  rec.cause = cause
  rec.frozen_until = math.max(rec.frozen_until, st.clock + freeze_time)
end

local verdict = judge()
if verdict == 'repeat' then return granted(rec.row.seen) end
if verdict == 'clone' then
  -- The claim stays for one removal time: both processes may draw on it.
  save_record(rec, { own, CLONED .. string.sub(rec.own_value, 2) }, {})
  return { 'cloned' }
end
if verdict == 'replaced' then
  -- Time goes on, or a replaced processor alone in its pool would wait for ever.
  local silent, problem = advance(rec, st)
  if not silent then return problem end
  save_record(rec, {}, silent)
end
if verdict ~= 'accept' and verdict ~= 'lost_row' then return { verdict } end

local identity, is_new, marker
identity, failure = server_identity(life)
if not identity then return failure end
if rec.revision == '0' or rec.store ~= identity then
  is_new, marker, failure = known_new(identity, st.now, freeze_time)
  if failure then return failure end
end

local silent, problem = advance(rec, st)
if not silent then return problem end
if rec.revision == '0' and not is_new then
  freeze('new_record')
elseif rec.revision ~= '0' and rec.store ~= identity then
  freeze('store_identity')
elseif less(rec.revision, seen_revision) then
  freeze('older_record')
elseif verdict == 'lost_row' then
  freeze('lost_row')
elseif not frozen() then
  rec.cause = NONE
end
rec.store = identity
if less(rec.revision, seen_revision) then rec.revision = seen_revision end
if rec.rows == 0 then rec.oldest = st.clock end
if rec.claims == 0 and not rec.row and not any_live(rec, st) then rec.lease = lease end

-- A new incarnation closes every other one of its ID; their claims stay until removal.
local changed = {}
if not rec.row then
  changed = siblings(rec, st, id)
  for i = 2, #changed, 2 do changed[i] = REPLACED .. string.sub(changed[i], 2) end
  rec.rows = rec.rows + 1
else
  rec.claims = rec.claims - rec.row.claims
end

-- Facts first: what is reported in use is the claim, even beyond the whole. Then
-- each tag is answered what there is room for. A frozen pool lets no share grow.
local own_claims, row = 0, {}
for i = first_tag, #ARGV, 5 do own_claims = own_claims + ARGV[i + 1] end
for i = first_tag, #ARGV, 5 do
  local in_use, limit = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local room = math.max(WHOLE - (rec.claims + own_claims - in_use), 0)
  if frozen() then limit = in_use end
  local answered = math.min(limit, room)
  own_claims = own_claims - in_use + math.max(in_use, answered)
  row[#row + 1] = string.format('%s %.0f %s %s %d %s', ARGV[i + 1], answered, ARGV[i + 3], ARGV[i + 4], #ARGV[i], ARGV[i])
end
local seen = number(st.clock)
local head = table.concat({ LIVE, seen, number(own_claims), seq, nonce, number(#row) }, ' ')
changed[#changed + 1] = own
changed[#changed + 1] = head .. ' ' .. table.concat(row, ' ')
rec.claims = rec.claims + own_claims

save_record(rec, changed, silent)
if marker then
  redis.call('SET', KEYS[2], marker, 'PX', MARKER_EXPIRY)
else
  redis.call('PEXPIRE', KEYS[2], MARKER_EXPIRY)
end
return granted(seen)
