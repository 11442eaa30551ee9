-- Slots of tags with a quota on calls in flight, as package driver grants them. A request has for each tag, by rising key: the key in eight
-- bytes, and what is in use, wanted, in demand and the total. For what is on record see tagclaims.lua.

local SLOTS, SLOTS_BYTES = '>c8I4I4I4I4', 24

-- Puts claims in front of a note. Returns what to write for the pool size and for the note.
local function with_claims(pool_size, claims, note)
  if claims == '' then return pool_size, note end
  return pool_size .. '+' .. #claims, claims .. note
end

-- The keys of the tags that a request names.
local function keys_of(slots)
  local keys = {}
  for pos = 1, #slots, SLOTS_BYTES do keys[#keys + 1] = string.sub(slots, pos, pos + 7) end
  return keys
end

-- Tells whether any row claims slots of a tag, or may do so.
local function any_claims(rec, st)
  local fields = all_fields(rec)
  for i = 1, #fields, 2 do
    if is_row(fields[i]) and not gone(st, string.match(fields[i + 1], '^%d (%d+) ') or st.clock) then
      local claims = claims_of(fields[i + 1])
      if not claims then return true end
      for pos = 1, #claims, CLAIM_BYTES do
        local _, used, granted = struct.unpack(CLAIM, claims, pos)
        if used > 0 or granted > 0 then return true end
      end
    end
  end
  return false
end

-- Grants slots as far as there is room. The own row's claims are off the sums. allowed tells what the state of the pool allows, outdated
-- that the totals are. Returns the claims of the own row.
local function grant_tags(rec, slots, allowed, outdated)
  local claims, sums = {}, rec.sums or {}
  each_sum(rec, keys_of(slots), function(i, claimed)
    local key, used, wants, demand, total = struct.unpack(SLOTS, slots, 1 + (i - 1) * SLOTS_BYTES)
    local granted = allowed(used, wants)
    if outdated then granted = math.min(granted, used) end
    if sums[key] then claimed = claimed + sums[key][1] end
    if total > 0 then granted = math.min(granted, math.max(total - claimed, 0)) end
    claims[i] = struct.pack(CLAIM, key, used, granted, demand)
  end)
  return table.concat(claims)
end

-- What is answered of the tags that a request names, packed: how many slots the row of value is granted, and what all others claim and could
-- use.
local function tag_answer(rec, slots, value)
  local own, answer = {}, {}
  local claims = claims_of(value)
  for pos = 1, #claims, CLAIM_BYTES do
    local key, used, granted, demand = struct.unpack(CLAIM, claims, pos)
    own[key] = { granted, math.max(used, granted), demand }
  end
  local keys = keys_of(slots)
  each_sum(rec, keys, function(i, claimed, demand)
    local c = own[keys[i]] or { 0, 0, 0 }
    answer[i] = struct.pack('<ddd', c[1], claimed - c[2], demand - c[3])
  end)
  return table.concat(answer)
end

-- Leaves out of the fields of a pool the sums of tags and what rows claim of them: a reply would else grow with rows times tags.
local function cut_claims(fields)
  local kept, n = 0, #fields
  for i = 1, n, 2 do
    local name = fields[i]
    if string.byte(name) ~= 0 or string.sub(name, 1, #SUM) ~= SUM then
      fields[kept + 1], fields[kept + 2] = name, fields[i + 1]
      kept = kept + 2
    end
  end
  for i = n, kept + 1, -1 do fields[i] = nil end
  for i = 1, kept, 2 do
    local head, size, first = string.match(fields[i + 1], '^(%d %d+ %d+ %d+ %d+ %d+ %d+ %d+ %d+)%+(%d+) ()')
    if head and is_row(fields[i]) then fields[i + 1] = head .. ' ' .. string.sub(fields[i + 1], first + size) end
  end
end

-- Tells whether the first of two keys in eight bytes is below the second.
local function key_below(a, b)
  local a1, a2 = struct.unpack('>I4I4', a)
  local b1, b2 = struct.unpack('>I4I4', b)
  return a1 < b1 or (a1 == b1 and a2 < b2)
end

-- Claims with what a request reports in use counted beside them; see withFacts in package driver.
local function with_facts(claims, slots)
  local list, at = {}, 1
  for pos = 1, #claims, CLAIM_BYTES do list[#list + 1] = { struct.unpack(CLAIM, claims, pos) } end
  for pos = 1, #slots, SLOTS_BYTES do
    local key, used = struct.unpack(SLOTS, slots, pos)
    while list[at] and key_below(list[at][1], key) do at = at + 1 end
    if list[at] and list[at][1] == key then
      list[at][2] = math.max(list[at][2], used)
    elseif used > 0 and #list < MAX_CLAIMS then
      table.insert(list, at, { key, used, 0, 0 })
    end
  end
  for i, c in ipairs(list) do list[i] = struct.pack(CLAIM, c[1], c[2], c[3], c[4]) end
  return table.concat(list)
end
