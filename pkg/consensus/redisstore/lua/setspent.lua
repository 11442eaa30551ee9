-- What is spent of one budget window is set, as Record.SetSpent of package driver does it.
-- KEYS: the pool, one that is not used, the buckets of the pool, those of names and their sketch. ARGV: the key of the bucket, in eight bytes, and packed: start, end
-- and tokens.
-- Reply: what became of it, and the server's time.

local rec, got = load_record('', { BUCKETS, NAMES })
if not rec then return got end
local now = server_time()
if rec.revision == '0' then return { 'no pool', number(now) } end
local start, stop, tokens = struct.unpack('<ddd', ARGV[2])
if now < start or now >= stop then return { 'window', number(now) } end
local buckets, lost = load_buckets(got[4], got[5], 1, 1)
if not buckets then return lost end
if lost then return { 'lost', number(now) } end
local value, dropped, written, changed = buckets.values[1] or buckets.names[1], {}, {}, {}
if not value and buckets.n >= MAX_BUCKETS then
  dropped[1] = dispensable(buckets, { clock = rec.clock, now = now }, 1, 1)
  if not dropped[1] then return { 'full', number(now) } end
end
local windows = update_windows(value, { 0, start, stop, 0 }, now, false)
windows[window_at(windows, start) + 2] = tokens
local text = value and string.sub(value, 1, BUCKET_BYTES) or struct.pack(BUCKET, string.rep('\0', 8), rec.clock, rec.clock)
for k = 1, #windows, 3 do text = text .. struct.pack('<ddd', windows[k], windows[k + 1], windows[k + 2]) end
if buckets.names[1] and not buckets.values[1] then
  buckets.written = { ARGV[1], text }
else
  written = { ARGV[1], text }
end
note_buckets(buckets, written, changed)
save_record(rec, changed, {})
save_buckets(rec, buckets, written, dropped)
return { 'set', number(now) }
