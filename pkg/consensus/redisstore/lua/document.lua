-- The documents of a pool: for each a field whose name is a zero byte, 'doc', a
-- zero byte and the document's name, and whose value is its version, a blank and its
-- body. No row's field begins with a zero byte. Versions have 63 bits, so they stay
-- text, as the rest of a request's report does: name, version, base and body.
-- A value of another form counts as the oldest version, with a body that nobody can
-- read: every change takes its place, and a later version that is given back.

local DOCUMENT, MAX_DOCUMENTS, MAX_BODY = '\0doc\0', 8, 4096
local MAX_VERSION, DAMAGED = '9223372036854775807', '1 damaged'

-- The names of the fields of count documents that are reported from ARGV[first] on.
local function document_fields(first, count)
  local fields = {}
  for i = 1, count do fields[i] = DOCUMENT .. ARGV[first + 4 * (i - 1)] end
  return fields
end

-- The value of a field as it counts, as addDocument of package redisstore reads it.
local function document_value(value)
  if not value then return value end
  local version, body = string.match(value, '^([1-9]%d*) ()')
  local size = #value + 1 - (body or 0)
  if not version or size == 0 or size > MAX_BODY or #version > 19 or less(MAX_VERSION, version) then return DAMAGED end
  return value
end

-- The version of a field's value, '0' if there is none.
local function version_of(value) return value and string.match(document_value(value), '^%d+') or '0' end

-- Puts a document of which value is on record among the fields to be written, if the
-- report is one that takes the place of that. Returns whether it does, and the version
-- on record before.
local function take_document(rec, value, changed, name, version, base, body)
  local current = version_of(value)
  if body == '' or not less(current, version) or base ~= current and base ~= version then return false, current end
  if not value then
    if rec.documents == MAX_DOCUMENTS then return false, current end
    rec.documents = rec.documents + 1
  end
  changed[#changed + 1] = DOCUMENT .. name
  changed[#changed + 1] = version .. ' ' .. body
  return true, current
end

-- Leaves of every document that is on record exactly as reported only the version:
-- the sender has the rest. fields lists names and values of a pool in turn. Tells whether there are sums of tags, too.
local function shorten_documents(fields, first, count)
  local tagged = false
  for i = 1, #fields, 2 do
    local special = string.byte(fields[i]) == 0
    tagged = tagged or special and string.sub(fields[i], 1, #SUM) == SUM
    if special and string.sub(fields[i], 1, #DOCUMENT) == DOCUMENT then
      local value = document_value(fields[i + 1])
      fields[i + 1] = value
      for at = first, first + 4 * (count - 1), 4 do
        local version, body = ARGV[at + 1], ARGV[at + 3]
        if fields[i] == DOCUMENT .. ARGV[at] and version_of(value) == version
          and (body == '' or value == version .. ' ' .. body) then
          fields[i + 1] = version
        end
      end
    end
  end
  return tagged
end
