-- One change of a document, as Record.Save of package driver does it.
-- KEYS: the pool. ARGV: name, version, base, body.
-- Reply: what became of it, and the version on record after that.

local name, version, base, body = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local rec, got = load_record('', document_fields(1, 1))
if not rec then return got end
if rec.revision == '0' then return { 'no pool', '0' } end
if document_value(got[4]) == version .. ' ' .. body then return { 'saved', version } end -- before
local changed = {}
local taken, current = take_document(rec, got[4], changed, name, version, base, body)
if taken then
  save_record(rec, changed, {})
  return { 'saved', version }
end
if current == '0' and base == '0' then return { 'too many', '0' } end
return { 'conflict', current }
