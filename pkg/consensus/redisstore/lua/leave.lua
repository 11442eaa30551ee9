-- One leave, as Record.Leave of package consensus does it.
-- KEYS: the pool. ARGV: id, incarnation, seq. Reply: 1 when the record changed.

local own, seq = ARGV[1] .. '\0' .. ARGV[2], ARGV[3]
local rec, failure = load_record(own)
if not rec then return failure end
local row = rec.row
if not row or row.state ~= LIVE or not less(row.seq, seq) then return 0 end

local st = begin(rec, rec.lease)
local silent, problem = sweep(rec, st)
if not silent then return problem end
advance(rec, st)
local changed = {}
if gone(st, row.seen) then
  silent[#silent + 1] = own
else
  local head = { LEFT, number(st.clock), '0', seq, row.nonce, row.ack_seq, row.ack_nonce, '0' }
  changed = { own, table.concat(head, ' ') }
end
save_record(rec, changed, silent)
return 1
