"""The Redis store's writes, each one Lua script: all of it happens, or nothing.

Keys, below the namespace:
  artifact:KEY        STRING  header, then the bytes; the header alone where they are in chunks (a manifest)
  chunk:KEY:DIGEST:N  STRING  part N of the bytes
  holders:KEY         ZSET    job -> when its hold ends (ms)
  job:JOB             HASH    artifact key -> bytes, and their sum under "total" (no key: it has no colon)
  claim:KEY           STRING  owner
  released:JOB        STRING  the job is over

Header: digest (32 hex digits of BLAKE2b-128), bytes (16 digits), chunks (8 digits).
Scripts reach keys that are not declared: one server, no cluster.
"""

from __future__ import annotations

HEADER_BYTES = 56

_COMMON = """
local ns = KEYS[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function name(kind, id) return ns .. ':' .. kind .. ':' .. id end

local function chunks_of(key, header)
  local keys = {}
  for i = 0, tonumber(string.sub(header, 49, 56)) - 1 do
    keys[#keys + 1] = name('chunk', key .. ':' .. string.sub(header, 1, 32) .. ':' .. i)
  end
  return keys
end

-- The header of an artifact with all its chunks there, or nil.
local function intact(key)
  local header = redis.call('GETRANGE', name('artifact', key), 0, 55)
  if #header < 56 then return nil end
  local chunks = chunks_of(key, header)
  if #chunks > 0 and redis.call('EXISTS', unpack(chunks)) < #chunks then return nil end
  return header
end

local function size_of(header) return tonumber(string.sub(header, 33, 48)) end

local function delete(key)
  local header = redis.call('GETRANGE', name('artifact', key), 0, 55)
  if #header == 56 then redis.call('UNLINK', name('artifact', key), unpack(chunks_of(key, header))) end
end

local function let_go(job, key)
  local size = redis.call('HGET', name('job', job), key)
  if not size then return end
  -- HDEL before HINCRBY: a full server refuses the latter unless the script has written before.
  redis.call('HDEL', name('job', job), key)
  redis.call('HINCRBY', name('job', job), 'total', -size)
  if redis.call('HLEN', name('job', job)) == 1 then redis.call('UNLINK', name('job', job)) end
  redis.call('ZREM', name('holders', key), job)
  redis.call('ZREMRANGEBYSCORE', name('holders', key), '-inf', now)
  if redis.call('EXISTS', name('holders', key)) == 0 then delete(key) end
end

local function held(job)
  local keys = {}
  for _, key in ipairs(redis.call('HKEYS', name('job', job))) do
    if key ~= 'total' then keys[#keys + 1] = key end
  end
  return keys
end

-- Take what expired or was lost off the job's account.
local function prune(job)
  for _, key in ipairs(held(job)) do
    if redis.call('EXISTS', name('artifact', key)) == 0 then let_go(job, key) end
  end
end

local function total_without(job, key)
  local sums = redis.call('HMGET', name('job', job), 'total', key)
  return (tonumber(sums[1] or 0)) - (tonumber(sums[2] or 0))
end

local function refusal(job, key, size, limit)
  if redis.call('EXISTS', name('released', job)) == 1 then return 'released' end
  if total_without(job, key) + size > limit then
    prune(job)
    if total_without(job, key) + size > limit then return 'too large' end
  end
  return nil
end

local function extend(full, ends)
  if redis.call('PTTL', full) < ends - now then redis.call('PEXPIREAT', full, ends) end
end

local function bind(job, key, header, lifetime)
  local account, holders, ends = name('job', job), name('holders', key), now + lifetime
  local size = size_of(header)
  redis.call('HINCRBY', account, 'total', size - tonumber(redis.call('HGET', account, key) or 0))
  redis.call('HSET', account, key, size)
  redis.call('ZADD', holders, math.max(ends, tonumber(redis.call('ZSCORE', holders, job) or 0)), job)
  extend(account, ends)
  extend(holders, ends)
  extend(name('artifact', key), ends)
  local whole = now + redis.call('PTTL', name('artifact', key))
  for _, chunk in ipairs(chunks_of(key, header)) do extend(chunk, whole) end
end
"""

# job, key, lifetime, job limit, bytes of what the caller would put otherwise
HOLD = (
    _COMMON
    + """
local job, key, lifetime, limit = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local header = intact(key)
local no = refusal(job, key, header and size_of(header) or tonumber(ARGV[5]), limit)
if no then return no end
if not header then return 'missing' end
bind(job, key, header, lifetime)
return 'ok'
"""
)

# job, key, lifetime, job limit, header with the bytes or, once the chunks are there, without
PUT = (
    _COMMON
    + """
local job, key, lifetime, limit = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local header = intact(key)
local chunks = chunks_of(key, string.sub(ARGV[5], 1, 56))
local no = refusal(job, key, size_of(header or ARGV[5]), limit)
if no then
  if not header and #chunks > 0 then redis.call('UNLINK', unpack(chunks)) end
  return no
end
if not header then
  if #chunks > 0 and redis.call('EXISTS', unpack(chunks)) < #chunks then return 'missing' end
  header = string.sub(ARGV[5], 1, 56)
  redis.call('SET', name('artifact', key), ARGV[5], 'PX', lifetime)
end
bind(job, key, header, lifetime)
redis.call('UNLINK', name('claim', key))
return 'ok'
"""
)

# keys
HAS = (
    _COMMON
    + """
local found = {}
for i, key in ipairs(ARGV) do found[i] = intact(key) and 1 or 0 end
return found
"""
)

# key, digest: delete a damaged artifact, if it is still this one; its holders may hold its successor
DISCARD = (
    _COMMON
    + """
if redis.call('GETRANGE', name('artifact', ARGV[1]), 0, 31) == ARGV[2] then delete(ARGV[1]) end
return 'ok'
"""
)

# job, keys...
DROP = (
    _COMMON
    + """
for i = 2, #ARGV do let_go(ARGV[1], ARGV[i]) end
return 'ok'
"""
)

# job, milliseconds for which it counts as over, kinds to keep...
RELEASE = (
    _COMMON
    + """
local job, keep = ARGV[1], {}
for i = 3, #ARGV do keep[ARGV[i]] = true end
-- A deletion first, so that a full server lets the script write.
redis.call('UNLINK', name('released', job))
redis.call('SET', name('released', job), '1', 'PX', ARGV[2])
for _, key in ipairs(held(job)) do
  if not keep[string.match(key, '^[^:]*')] then let_go(job, key) end
end
return 'ok'
"""
)

# job
USAGE = (
    _COMMON
    + """
prune(ARGV[1])
return redis.call('HGETALL', name('job', ARGV[1]))
"""
)

# key, owner, milliseconds
CLAIM = (
    _COMMON
    + """
if intact(ARGV[1]) then return 'made' end
local owner = redis.call('GET', name('claim', ARGV[1]))
if owner and owner ~= ARGV[2] then return 'taken' end
redis.call('SET', name('claim', ARGV[1]), ARGV[2], 'PX', ARGV[3])
return 'yours'
"""
)

# key, owner
UNCLAIM = (
    _COMMON
    + """
if redis.call('GET', name('claim', ARGV[1])) == ARGV[2] then redis.call('UNLINK', name('claim', ARGV[1])) end
return 'ok'
"""
)
