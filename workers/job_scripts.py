"""The writes of `jobs`, and the view of a job, each one Lua script: all of it happens at once, or nothing.

Keys, of one job: 1 its head (hash), 2 its steps (hash), 3 its events (stream), 4 its counts (hash);
5 the set of jobs that somebody has to look after. Arguments: 1 a step, 2 the job's lifetime, then each
script's own.

A step is a JSON text, see `job_view.StepState`; its result is JSON within JSON, since Lua's encoder does not
tell an empty list from an empty object.
"""

from __future__ import annotations

_COMMON = """
local now = redis.call('TIME'); now = tonumber(now[1]) + tonumber(now[2]) / 1000000
local function load(name)
  local text = redis.call('HGET', KEYS[2], name)
  return text and cjson.decode(text) or nil
end
local function keep(value)
  redis.call('HSET', KEYS[2], ARGV[1], cjson.encode(value))
  redis.call('EXPIRE', KEYS[1], ARGV[2]); redis.call('EXPIRE', KEYS[2], ARGV[2])
end
local function tell(text, most)
  redis.call('XADD', KEYS[3], 'MAXLEN', '~', most, '*', 'data', text)
  redis.call('EXPIRE', KEYS[3], ARGV[2])
end
local function late()
  local deadline = tonumber(redis.call('HGET', KEYS[1], 'deadline') or '0')
  return deadline > 0 and now > deadline
end
local state = redis.call('HGET', KEYS[1], 'state')
"""

# A transaction would be refused by a full server, even one that only reads.
VIEW = """
return {redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2]), redis.call('TIME')}
"""

# 3 the status that the step must have ('': none, it was never sent), 4 the time of its last change or sign of life
SEND = (
    _COMMON
    + """
if state ~= 'running' then return 0 end
local s = load(ARGV[1])
if s and ARGV[3] == '' then return 0 end
if ARGV[3] ~= '' and not s then return 0 end
if s and (s.status ~= ARGV[3] or s.at ~= tonumber(ARGV[4])) then return 0 end
keep({status = 'sent', starts = s and s.starts or 0, owner = '', at = now, sends = (s and s.sends or 0) + 1,
      note = s and s.note or '', moved = s and s.moved or now,
      last = s and (s.owner ~= '' and s.owner or s.last) or '', lacks = s and s.lacks or 0})
return 1
"""
)

# 3 owner, 4 lease, 5 most starts, 6 an owner that is known to be dead
BEGIN = (
    _COMMON
    + """
if not state then return 'lost' end
if state ~= 'running' then return 'ended' end
if late() then return 'late' end
local s = load(ARGV[1])
if not s then return 'gone' end
if s.status == 'done' then return 'done' end
if s.status == 'running' and s.owner == ARGV[3] then return 'go' end
if s.status == 'running' and s.owner ~= ARGV[6] and now - s.at < tonumber(ARGV[4]) then return 'busy ' .. s.owner end
if s.starts >= tonumber(ARGV[5]) then return 'poisoned' end
s.status = 'running'; s.starts = s.starts + 1; s.owner = ARGV[3]; s.at = now; s.begun = now; s.note = ''; s.due = nil
keep(s)
return 'go'
"""
)

# 3 owner, 4 '1' where the work got further since the last beat
BEAT = (
    _COMMON
    + """
if not state then return 'lost' end
if state ~= 'running' then return state end
if late() then return 'late' end
local s = load(ARGV[1])
if not s or s.status ~= 'running' or s.owner ~= ARGV[3] then return 'taken' end
s.at = now
if ARGV[4] == '1' then s.moved = now end
keep(s)
return 'running'
"""
)

# 3 owner, 4 result
FINISH = (
    _COMMON
    + """
if state ~= 'running' then return 0 end
local s = load(ARGV[1])
if not s or s.status ~= 'running' or s.owner ~= ARGV[3] then return 0 end
s.status = 'done'; s.at = now; s.owner = ''; s.result = ARGV[4]
keep(s)
return 1
"""
)

# 3 owner, 4 note, 5 seconds until it is sent again, 6 '1' where this start does not count, 7 '1' where memory or Redis
# is lacking
HAND_BACK = (
    _COMMON
    + """
local s = load(ARGV[1])
if state ~= 'running' or not s or s.status ~= 'running' or s.owner ~= ARGV[3] then return 0 end
s.status = 'handed back'; s.at = now; s.due = now + tonumber(ARGV[5]); s.note = ARGV[4]; s.last = s.owner; s.owner = ''
if ARGV[6] == '1' then s.starts = math.max(0, s.starts - 1) end
if ARGV[7] == '1' then s.lacks = (s.lacks or 0) + 1 end
keep(s)
return 1
"""
)

# 3 owner; then the steps that made what is lost. Forgets those that are done, and this one, whose turn comes
# again after them; how often any of them was lost by now. One that is being made already is left alone.
REMAKE = (
    _COMMON
    + """
if state ~= 'running' then return 0 end
local s, most = load(ARGV[1]), 0
if s and s.owner == ARGV[3] then redis.call('HDEL', KEYS[2], ARGV[1]) end
for i = 4, #ARGV do
  local maker = load(ARGV[i])
  if maker and maker.status == 'done' then
    redis.call('HDEL', KEYS[2], ARGV[i])
    most = math.max(most, redis.call('HINCRBY', KEYS[4], 'lost/' .. ARGV[i], 1))
    redis.call('EXPIRE', KEYS[4], ARGV[2])
  end
end
return most
"""
)

# 3 stage, 4 part of it, 5 done of the part, 6 total of all parts, 7 most events
TELL = (
    _COMMON
    + """
if state ~= 'running' then return 0 end
local field, done = ARGV[3] .. '/' .. ARGV[4], tonumber(ARGV[5])
local before = tonumber(redis.call('HGET', KEYS[4], field) or '-1')
if before >= done then return 0 end
redis.call('HSET', KEYS[4], field, done); redis.call('EXPIRE', KEYS[4], ARGV[2])
local sum, all = 0, redis.call('HGETALL', KEYS[4])
for i = 1, #all, 2 do
  if string.sub(all[i], 1, #ARGV[3] + 1) == ARGV[3] .. '/' then sum = sum + tonumber(all[i + 1]) end
end
tell(cjson.encode({stage = ARGV[3], done = sum, total = tonumber(ARGV[6])}), ARGV[7])
return 1
"""
)

# 3 event as JSON, 4 most events
EVENT = (
    _COMMON
    + """
if state == 'running' then tell(ARGV[3], ARGV[4]) end
return 1
"""
)

# 3 what was decided as JSON, 4 event as JSON, 5 most events. What stands: the first that was decided.
DECIDE = (
    _COMMON
    + """
if state ~= 'running' then return '' end
if redis.call('HSETNX', KEYS[1], 'budget', ARGV[3]) == 1 then tell(ARGV[4], ARGV[5]) end
return redis.call('HGET', KEYS[1], 'budget')
"""
)

# 3 report as JSON
REPORT = (
    _COMMON
    + """
if state == 'running' then redis.call('HSET', KEYS[1], 'report', ARGV[3]) end
return 1
"""
)

# 3 state, 4 error as JSON, 5 last event as JSON, 6 most events
END = (
    _COMMON
    + """
if state ~= 'running' then return 0 end
-- What needs no memory first, so that a full server lets the script write: the end of a job makes room.
for _, key in ipairs({KEYS[1], KEYS[2], KEYS[4]}) do redis.call('EXPIRE', key, ARGV[2]) end
redis.call('HSET', KEYS[1], 'state', ARGV[3], 'error', ARGV[4])
tell(ARGV[5], ARGV[6])
return 1
"""
)
