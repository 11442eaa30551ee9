-- What rows claim of tags with a quota on calls in flight; see TagClaim in package driver. A row's claims stand in front of its note:
-- pool_size is followed by a plus sign and the number of their bytes. Each is the tag's key in eight bytes, and what is in use, granted and
-- in demand. They stand by rising key.
--
-- Beside the rows the hash has a field for each tag, so that a step need not look at all rows. Its name is SUM and the key. Its value is,
-- packed, what all rows claim and the demand of those that are live. Without the field both are 0. Steps note in rec.sums by how much they
-- change, and save_record writes it.

local SUM, SUMS = '\0tags\0', '<dd'
local CLAIM, CLAIM_BYTES, MAX_CLAIMS = '>c8I4I4I4', 20, 512

-- The claims of a row's value, empty if there are none; nil if nothing can be made of the value.
local function claims_of(value)
  local size, first = string.match(value, '^%d %d+ %d+ %d+ %d+ %d+ %d+ %d+ %d+(%+?%d*) ()')
  if not size or size == '' then return size end
  size = tonumber(string.sub(size, 2)) or -1
  local claims = string.sub(value, first, first + size - 1)
  if #claims ~= size or size % CLAIM_BYTES ~= 0 then return nil end
  return claims
end

-- Adds what a row claims to the sums, or takes it off with a sign of -1. Tells whether anything could be made of the row.
local function count_claims(rec, value, sign)
  local claims, live = claims_of(value), string.sub(value, 1, 1) == '0'
  for pos = 1, claims and #claims or 0, CLAIM_BYTES do
    local key, used, granted, demand = struct.unpack(CLAIM, claims, pos)
    if not rec.sums then rec.sums = {} end
    local sum = rec.sums[key] or { 0, 0 }
    rec.sums[key] = sum
    sum[1] = sum[1] + sign * math.max(used, granted)
    if live then sum[2] = sum[2] + sign * demand end
  end
  return claims ~= nil
end

-- What all rows claim of tags, and their demand, as it is on record; a step reads each but once. Calls do_with for the place of each key, with both.
local function each_sum(rec, keys, do_with)
  local known, names, lacking = rec.known_sums or {}, {}, {}
  rec.known_sums = known
  for _, key in ipairs(keys) do
    if not known[key] then lacking[#lacking + 1], names[#names + 1] = key, SUM .. key end
  end
  for first = 1, #names, 4000 do
    local values = redis.call('HMGET', KEYS[1], unpack(names, first, math.min(first + 3999, #names)))
    for i, value in ipairs(values) do known[lacking[first + i - 1]] = value and { struct.unpack(SUMS, value) } or { 0, 0 } end
  end
  for i, key in ipairs(keys) do do_with(i, known[key][1], known[key][2]) end
end

-- Writes the sums that a step has changed.
local function save_sums(rec)
  local keys, written, dropped = {}, {}, {}
  for key, sum in pairs(rec.sums or {}) do
    if sum[1] ~= 0 or sum[2] ~= 0 then keys[#keys + 1] = key end
  end
  each_sum(rec, keys, function(i, claims, demand)
    local sum = rec.sums[keys[i]]
    claims, demand = claims + sum[1], demand + sum[2]
    rec.known_sums[keys[i]] = { claims, demand }
    if claims == 0 and demand == 0 then
      dropped[#dropped + 1] = SUM .. keys[i]
    else
      written[#written + 1] = SUM .. keys[i]
      written[#written + 1] = struct.pack(SUMS, claims, demand)
    end
  end)
  for i = 1, #written, 4000 do redis.call('HSET', KEYS[1], unpack(written, i, math.min(i + 3999, #written))) end
  for i = 1, #dropped, 4000 do redis.call('HDEL', KEYS[1], unpack(dropped, i, math.min(i + 3999, #dropped))) end
end
