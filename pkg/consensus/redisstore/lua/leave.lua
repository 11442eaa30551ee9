-- One leave, as Record.Leave of package consensus does it.
-- KEYS: the pool. ARGV: id, incarnation, seq, last_seq, last_nonce, unanswered,
-- oldest; see sent_by.
-- Reply: 1 when the record changed.

local own, seq, last_seq, last_nonce = ARGV[1] .. '\0' .. ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local unanswered, oldest = ARGV[6], ARGV[7]
local rec, failure = load_record(own)
if not rec then return failure end
local row = rec.row
if not row or row.state ~= LIVE or not less(row.seq, seq) then return 0 end

if not less(row.seq, last_seq) and not sent_by(row, last_seq, last_nonce, unanswered, oldest) then
  -- One of two processes leaves; the other may still draw.
  save_record(rec, { own, CLONED .. string.sub(rec.own_value, 2) }, {})
  return 1
end
local st = begin(rec, rec.lease)
local silent, problem = advance(rec, st)
if not silent then return problem end
local changed = {}
if rec.row then
  rec.claims = rec.claims - row.claims
  local tombstone = { LEFT, number(st.clock), '0', seq, row.nonce, '0' }
  changed = { own, table.concat(tombstone, ' ') }
end
save_record(rec, changed, silent)
return 1
