"""What is known of a job, in Redis: its order, its state, its steps, its progress.

A step is one task's worth of work ("motion", "render:12"). It is *sent* when its message was put in a
queue, *running* while a worker renews its lease, *done* when its result stands. All changes go through
Lua scripts, so two workers never both begin a step, and a late worker never ends a step that another
took over. Times are Redis' own clock, in seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import redis

from pipeline.errors import TalkreelError

from .errors import JobNotFoundError, error_to_json

LEASE = 15.0
"""Seconds after which a running step whose worker did not renew it counts as abandoned."""

MOST_STARTS = 3
"""A step that was begun so often and never ended has killed its workers, and fails its job."""

LIFETIME = 24 * 3600
"""Seconds that a job is remembered after its last change."""

MOST_EVENTS = 1000
"""Progress events kept for a client that comes back later."""

RUNNING = "running"
ENDED = ("done", "failed", "cancelled")


@dataclass(frozen=True)
class Order:
    """What the client asked for: settings, inputs by artifact key
    and file name, and which code and pack shall make it.

    `submitted` and `deadline` are Redis times in seconds (deadline None = none).
    """

    job: str
    settings: dict[str, Any]
    portrait: str
    audio: str
    portrait_name: str
    audio_name: str
    pack: str
    pack_identity: str
    code: str
    priority: str = "normal"
    submitted: float = 0.0
    deadline: float | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> Order:
        return cls(**json.loads(text))


@dataclass(frozen=True)
class StepState:
    """One step as it stands. `result` is what the task returned (small JSON), once it is done."""

    status: str
    starts: int = 0
    owner: str = ""
    at: float = 0.0
    sends: int = 0
    note: str = ""
    result: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JobView:
    """A job read at one moment."""

    order: Order
    state: str
    error: dict[str, Any] | None
    steps: Mapping[str, StepState]
    now: float

    def result(self, step: str) -> dict[str, Any] | None:
        """What a step returned, or None while it is not done."""
        found = self.steps.get(step)
        return found.result if found and found.status == "done" else None


# A step is a JSON text in the hash of steps: {status, starts, owner, at, sends, note, result}; the result
# is JSON within JSON, since Lua's encoder does not tell an empty list from an empty object.
_COMMON = """
local now = redis.call('TIME'); now = tonumber(now[1]) + tonumber(now[2]) / 1000000
local function step()
  local text = redis.call('HGET', KEYS[2], ARGV[1])
  return text and cjson.decode(text) or nil
end
local function keep(value)
  redis.call('HSET', KEYS[2], ARGV[1], cjson.encode(value))
  redis.call('EXPIRE', KEYS[1], ARGV[2]); redis.call('EXPIRE', KEYS[2], ARGV[2])
end
local function late()
  local deadline = tonumber(redis.call('HGET', KEYS[1], 'deadline') or '0')
  return deadline > 0 and now > deadline
end
local state = redis.call('HGET', KEYS[1], 'state')
"""

_SEND = (
    _COMMON
    + """
if state ~= 'running' then return 0 end
local s = step()
if s and ARGV[3] == '' then return 0 end
if s and (s.status ~= ARGV[3] or tostring(s.sends) ~= ARGV[4]) then return 0 end
keep({status = 'sent', starts = s and s.starts or 0, owner = '', at = now, sends = (s and s.sends or 0) + 1,
      note = s and s.note or ''})
return 1
"""
)

_BEGIN = (
    _COMMON
    + """
if not state then return 'lost' end
if state ~= 'running' then return 'ended' end
if late() then return 'late' end
local s = step() or {status = 'sent', starts = 0, sends = 0, note = ''}
if s.status == 'done' then return 'done' end
if s.status == 'running' and s.owner ~= ARGV[3] and now - s.at < tonumber(ARGV[4]) then return 'busy' end
if s.starts >= tonumber(ARGV[5]) then return 'poisoned' end
s.status = 'running'; s.starts = s.starts + 1; s.owner = ARGV[3]; s.at = now; s.note = ''
keep(s)
return 'go'
"""
)

_BEAT = (
    _COMMON
    + """
if not state then return 'lost' end
if state ~= 'running' then return state end
if late() then return 'late' end
local s = step()
if not s or s.status ~= 'running' or s.owner ~= ARGV[3] then return 'taken' end
s.at = now; keep(s)
return 'running'
"""
)

_FINISH = (
    _COMMON
    + """
if state ~= 'running' then return 0 end
local s = step()
if not s or s.status == 'done' or s.owner ~= ARGV[3] then return 0 end
s.status = 'done'; s.at = now; s.owner = ''; s.result = ARGV[4]
keep(s)
return 1
"""
)

_HAND_BACK = (
    _COMMON
    + """
local s = step()
if not s or s.status == 'done' then return 0 end
s.status = 'handed back'; s.at = now; s.note = ARGV[4]; s.owner = ''
if ARGV[5] == '1' then s.starts = math.max(0, s.starts - 1) end
keep(s)
return 1
"""
)

_END = """
if redis.call('HGET', KEYS[1], 'state') ~= 'running' then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[1], 'error', ARGV[2])
return 1
"""


class Jobs:
    """The jobs in one Redis.

    Args:
        client: a Redis client that returns bytes. prefix: of every key.
        lifetime: seconds that a job is remembered after its last change.
    """

    def __init__(self, client: redis.Redis, prefix: str = "fleet", lifetime: int = LIFETIME) -> None:
        self.redis = client
        self.prefix = prefix
        self.lifetime = lifetime
        self._scripts = {
            name: client.register_script(text)
            for name, text in {
                "send": _SEND,
                "begin": _BEGIN,
                "beat": _BEAT,
                "finish": _FINISH,
                "hand_back": _HAND_BACK,
                "end": _END,
            }.items()
        }

    def key(self, job: str, part: str = "") -> str:
        return f"{self.prefix}:job:{job}{':' + part if part else ''}"

    @property
    def index(self) -> str:
        """Sorted set of jobs by the time of their submission."""
        return f"{self.prefix}:jobs"

    def now(self) -> float:
        seconds, micros = self.redis.time()
        return float(seconds) + micros / 1e6

    def create(self, order: Order) -> None:
        """Write a new job down; it is running from now on."""
        with self.redis.pipeline(transaction=True) as pipe:
            deadline = str(order.deadline or 0)
            head: dict[Any, Any] = {"order": order.to_json(), "state": RUNNING, "error": "", "deadline": deadline}
            pipe.hset(self.key(order.job), mapping=head)
            pipe.expire(self.key(order.job), self.lifetime)
            pipe.zadd(self.index, {order.job: order.submitted})
            pipe.zremrangebyscore(self.index, 0, order.submitted - self.lifetime)
            pipe.expire(self.index, self.lifetime)
            pipe.execute()

    def order(self, job: str) -> Order:
        """Raises JobNotFoundError: no such job (any more)."""
        text = self.redis.hget(self.key(job), "order")
        if text is None:
            raise JobNotFoundError(job)
        return Order.from_json(text)

    def view(self, job: str) -> JobView:
        """Raises JobNotFoundError: no such job (any more)."""
        with self.redis.pipeline(transaction=True) as pipe:
            pipe.hgetall(self.key(job))
            pipe.hgetall(self.key(job, "steps"))
            pipe.time()
            head, steps, (seconds, micros) = pipe.execute()
        if b"order" not in head:
            raise JobNotFoundError(job)
        return JobView(
            order=Order.from_json(head[b"order"]),
            state=head[b"state"].decode(),
            error=json.loads(head[b"error"]) if head.get(b"error") else None,
            steps={name.decode(): _step(text) for name, text in steps.items()},
            now=float(seconds) + micros / 1e6,
        )

    def all(self) -> list[str]:
        """Jobs that are remembered, oldest first."""
        return [job.decode() for job in self.redis.zrange(self.index, 0, -1)]  # type: ignore[union-attr]

    def running(self) -> Iterator[str]:
        """Jobs that have not ended, oldest first."""
        jobs = self.all()
        with self.redis.pipeline(transaction=False) as pipe:
            for job in jobs:
                pipe.hget(self.key(job), "state")
            for job, state in zip(jobs, pipe.execute(), strict=True):
                if state == RUNNING.encode():
                    yield job

    # Steps. `owner` names the process that runs one.

    def send(self, job: str, step: str, *, was: str = "", sends: int = 0) -> bool:
        """Mark a step as sent, before its message is put in a queue; False when that is not wanted.

        By default only a step that was never sent; with `was` and `sends`, only one that still stands so.
        """
        return bool(self._run("send", job, step, was, str(sends)))

    def begin(self, job: str, step: str, owner: str) -> str:
        """Take a step: "go", or why not: "done", "busy", "ended", "late", "poisoned", "lost"."""
        return self._run("begin", job, step, owner, str(LEASE), str(MOST_STARTS)).decode()

    def beat(self, job: str, step: str, owner: str) -> str:
        """Renew the lease; "running", or what became of the job or the step: a state, "late", "taken", "lost"."""
        return self._run("beat", job, step, owner).decode()

    def finish(self, job: str, step: str, owner: str, result: Mapping[str, Any]) -> bool:
        """The step is done; False when it was taken over meanwhile or the job has ended."""
        return bool(self._run("finish", job, step, owner, json.dumps(result)))

    def hand_back(self, job: str, step: str, note: str, *, uncounted: bool = False) -> None:
        """The step did not happen, for this reason; the supervisor sends it again later.

        `uncounted`: it was not even tried, so the start does not count.
        """
        self._run("hand_back", job, step, "", note, "1" if uncounted else "0")

    def undo(self, job: str, *steps: str) -> None:
        """Forget steps, so that they are sent again."""
        if steps:
            self.redis.hdel(self.key(job, "steps"), *steps)

    def _run(self, script: str, job: str, step: str, *args: str) -> Any:
        keys = [self.key(job), self.key(job, "steps")]
        return self._scripts[script](keys=keys, args=[step, self.lifetime, *args])

    # The job's end and its progress.

    def end(self, job: str, state: str, error: TalkreelError | None = None) -> bool:
        """Done, failed or cancelled; False when it had ended before. Who gets True cleans up."""
        data = error_to_json(error) if error else None
        ended = self._scripts["end"](keys=[self.key(job)], args=[state, json.dumps(data) if data else ""])
        if ended:
            self.event(job, {"state": state, **({"error": data} if data else {})})
        return bool(ended)

    def event(self, job: str, data: Mapping[str, Any]) -> None:
        """Tell whoever follows the job; `data` is small JSON."""
        key = self.key(job, "events")
        with self.redis.pipeline(transaction=True) as pipe:
            pipe.xadd(key, {"data": json.dumps(data)}, maxlen=MOST_EVENTS, approximate=True)
            pipe.expire(key, self.lifetime)
            pipe.execute()

    def count(self, job: str, stage: str, steps: int) -> int:
        """Add to a stage's steps done, for its progress; the sum."""
        key = self.key(job, "counts")
        with self.redis.pipeline(transaction=True) as pipe:
            pipe.hincrby(key, stage, steps)
            pipe.expire(key, self.lifetime)
            return int(pipe.execute()[0])

    def set_report(self, job: str, report: Mapping[str, Any]) -> None:
        """Keep what happened."""
        self.redis.hset(self.key(job), "report", json.dumps(report))

    def report(self, job: str) -> dict[str, Any]:
        """What happened; {} before the job's end."""
        text: Any = self.redis.hget(self.key(job), "report")
        return json.loads(text) if text else {}

    def counts(self, job: str) -> dict[str, int]:
        """Steps done by stage."""
        found: Any = self.redis.hgetall(self.key(job, "counts"))
        return {stage.decode(): int(count) for stage, count in found.items()}

    def forget(self, job: str) -> None:
        """Every trace of the job; its artifacts are the store's."""
        self.redis.unlink(*(self.key(job, part) for part in ("", "steps", "events", "counts")))
        self.redis.zrem(self.index, job)


def _step(text: bytes) -> StepState:
    data = json.loads(text)
    return StepState(**{**data, "result": json.loads(data["result"]) if "result" in data else {}})
