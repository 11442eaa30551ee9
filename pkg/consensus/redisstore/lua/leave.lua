-- One leave, as Record.Leave of package driver does it.
-- KEYS: the pool. ARGV: id, incarnation, seq, the requests remembered; see sent_by.
-- Reply: 1 when the record changed.

local own, seq, remembered = ARGV[1] .. '\0' .. ARGV[2], ARGV[3], ARGV[4]
local rec, failure = load_record(own, {})
if not rec then return failure end
local row = rec.row
if not row or row.state ~= LIVE or not less(row.seq, seq) then return 0 end

if not sent_by(row, remembered) then
  -- One of two processes leaves; the other may still draw.
  local clone = CLONED .. string.sub(rec.own_value, 2)
  count_claims(rec, rec.own_value, -1)
  count_claims(rec, clone, 1)
  save_record(rec, { own, clone }, {})
  return 1
end
local st = begin(rec, rec.lease)
local silent, problem = advance(rec, st)
if not silent then return problem end
local changed = {}
if rec.row then
  rec.claims = rec.claims - row.claim
  count_claims(rec, rec.own_value, -1)
  changed = { own, empty_row(LEFT, number(st.clock), seq, row.nonce) }
end
save_record(rec, changed, silent)
return 1
