-- What is spent of one budget window is set, as Record.SetSpent of package driver does it.
-- KEYS: the pool, one that is not used, the tills of the pool, those of names and their sketch. ARGV: the key of the till, in eight bytes, and packed: start, end
-- and tokens.
-- Reply: what became of it, and the server's time.

local rec, got = load_record('', { TILLS, NAMES })
if not rec then return got end
local now = server_time()
if rec.revision == '0' then return { 'no pool', number(now) } end
local start, stop, tokens = struct.unpack('<ddd', ARGV[2])
if now < start or now >= stop then return { 'window', number(now) } end
local tills, lost = load_tills(got[4], got[5], 1, 1)
if not tills then return lost end
if lost then return { 'lost', number(now) } end
local value, dropped, written, changed = tills.values[1] or tills.names[1], {}, {}, {}
if not value and tills.n >= MAX_TILLS then
  dropped[1] = dispensable(tills, { clock = rec.clock, now = now }, 1, 1)
  if not dropped[1] then return { 'full', number(now) } end
end
local windows = update_windows(value, { 0, start, stop, 0 }, now, false)
windows[window_at(windows, start) + 2] = tokens
local text = value and string.sub(value, 1, TILL_BYTES) or struct.pack(TILL, string.rep('\0', 8), rec.clock, rec.clock)
for k = 1, #windows, 3 do text = text .. struct.pack('<ddd', windows[k], windows[k + 1], windows[k + 2]) end
if tills.names[1] and not tills.values[1] then
  tills.written = { ARGV[1], text }
else
  written = { ARGV[1], text }
end
note_tills(tills, written, changed)
save_record(rec, changed, {})
save_tills(rec, tills, written, dropped)
return { 'set', number(now) }
