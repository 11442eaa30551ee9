-- What a step needs to know of the server: the time, which life of the server
-- this is, and whether it can have forgotten a pool.

-- The server's own time in microseconds since 1970, the same throughout a script.
local time_now
local function server_time()
  if not time_now then
    local t = redis.call('TIME')
    time_now = t[1] * 1000000 + t[2]
  end
  return time_now
end

-- A section of INFO as text, or nil and the reply to give instead.
local function server_info(section)
  local text = redis.pcall('INFO', section)
  if type(text) ~= 'string' then
    return nil, redis.error_reply('NUMATHROTTLE_INFO ' .. tostring(text.err))
  end
  return text
end

-- The reply to give when the marker cannot be read.
local function no_marker(failure) return redis.error_reply('NUMATHROTTLE_GET ' .. tostring(failure.err)) end

-- Names this life of the server: another server and a restarted one differ. A
-- durable server forgets nothing: there it is the life of the data, which the
-- group's marker names, that counts; one without a name gets the proposed one.
local function server_identity(life)
  if life ~= '' then
    local marker = redis.pcall('GET', KEYS[2])
    if type(marker) == 'table' then return nil, no_marker(marker) end
    return marker and string.match(marker, '^1 (%w+) ') or life
  end
  local text, failure = server_info('server')
  if not text then return nil, failure end
  local id = string.match(text, 'run_id:(%w+)')
  if not id then return nil, redis.error_reply('NUMATHROTTLE_INFO no run_id in INFO server') end
  return id
end

-- What the server does when its memory is full; empty when it does not say.
local function eviction_policy(memory) return string.match(memory, 'maxmemory_policy:([%w-]+)') or '' end

-- Tells whether an absent pool is known not to have existed for so long that no
-- share of it is in use any more, by the group's marker: this life of the server
-- wrote it longer ago than that, and has evicted no key since. Whatever removes the pool behind
-- our back (a flush, a restart, a failover) removes or outdates the marker, too;
-- eviction, which takes single keys, is counted and ruled out.
-- Returns also the marker to write if there is no good one.
local function known_new(identity, now, lasting)
  local memory, failure = server_info('memory')
  if not memory then return nil, nil, failure end
  local stats
  stats, failure = server_info('stats')
  if not stats then return nil, nil, failure end
  local marker = redis.pcall('GET', KEYS[2])
  if type(marker) == 'table' then return nil, nil, no_marker(marker) end
  local life, count, since
  if marker then
    life, count, since = string.match(marker, '^1 (%w+) (%d+) (%d+)$')
    if not life then return nil, nil, redis.error_reply('NUMATHROTTLE_DATA the marker is no marker of format 1') end
  end
  local evicted = string.match(stats, 'evicted_keys:(%d+)')
  local evicts = eviction_policy(memory) ~= 'noeviction' and not string.find(memory, 'maxmemory:0\r\n', 1, true)
  if evicted and not evicts and life == identity and count == evicted and tonumber(since) <= now then
    return now - since >= lasting
  end
  return false, string.format('1 %s %s %.0f', identity, evicted or '0', now)
end
