-- The documents of a pool: for each a field whose name is a zero byte, 'doc', a
-- zero byte and the document's name, and whose value is its version, a blank and its
-- body. No row's field begins with a zero byte. Versions have 63 bits, so they stay
-- text, as the rest of a request's report does: name, version, base and body.

local DOCUMENT, MAX_DOCUMENTS = '\0doc\0', 8

-- The names of the fields of count documents that are reported from ARGV[first] on.
local function document_fields(first, count)
  local fields = {}
  for i = 1, count do fields[i] = DOCUMENT .. ARGV[first + 4 * (i - 1)] end
  return fields
end

-- The version of a field's value, '0' if there is none, or nil if it is malformed.
local function version_of(value)
  if not value then return '0' end
  return string.match(value, '^(%d+) ')
end

-- Puts a document of which value is on record among the fields to be written, if the
-- report is one that takes the place of that. Returns whether it does, and the version
-- on record before; or nil and a reply.
local function take_document(rec, value, changed, name, version, base, body)
  local current = version_of(value)
  if not current then return nil, wrong('a document is not of format 1') end
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
-- the sender has the rest. fields lists names and values of a pool in turn.
local function shorten_documents(fields, first, count)
  for i = 1, #fields, 2 do
    if string.byte(fields[i]) == 0 then
      for at = first, first + 4 * (count - 1), 4 do
        local version, body, value = ARGV[at + 1], ARGV[at + 3], fields[i + 1]
        if fields[i] == DOCUMENT .. ARGV[at] and version_of(value) == version
          and (body == '' or value == version .. ' ' .. body) then
          fields[i + 1] = version
        end
      end
    end
  end
end
