"""Which task follows which, and nothing else.

    sound ──── motion ───┐
                         plan ── render:0 … render:n ── encode:0 … encode:m ── mux
    portrait ─ appearance┘

A job with a deadline has a step before `plan`, `budget`, which decides how much of the film there is time for.

A job's steps are not written down beforehand: whenever one ends, `ready` says which may follow. So a
message never grows with the film, and a job has only a few steps in the queues, which is what lets a
short job pass between the steps of a long one.

A chunk of key frames is rendered as if the one before ended well. Where that one's last frame turned out
to be repaired, the chunk is rendered once more from what really stands there (`settle:k`).
"""

from __future__ import annotations

from collections.abc import Iterator

from .job_view import JobView

MOST_QUEUED = 3
"""Steps of one kind that a job has waiting in a queue. Enough that no worker waits for a job's next step."""

CHUNKS_AHEAD = 24
"""Chunks that may be rendered beyond the first segment that is not encoded yet: bounds a job's frames in
Redis (24 x 50 frames of 512 px are about 400 MB)."""

QUEUES = {
    "sound": "media",
    "portrait": "media",
    "plan": "media",
    "mux": "media",
    "motion": "motion",
    "appearance": "render",
    "budget": "render",
    "render": "render",
    "settle": "render",
    "encode": "encode",
}
"""Which queue a kind of step waits in."""

NUMBERED = ("render", "settle", "encode")
"""Kinds of which a job has many."""

FOLLOWS: dict[str, tuple[str, ...]] = {
    "sound": (),
    "portrait": (),
    "motion": ("sound",),
    "appearance": ("portrait",),
    "plan": ("motion", "appearance"),
}

FOLLOWS_IN_TIME = {**FOLLOWS, "budget": FOLLOWS["plan"], "plan": ("budget",)}
"""The same of a job with a deadline."""


def kind_of(step: str) -> str:
    """ "render:12" -> "render"."""
    return step.partition(":")[0]


def number_of(step: str) -> int:
    """ "render:12" -> 12; 0 for a step without a number."""
    return int(step.partition(":")[2] or 0)


def finished(view: JobView) -> bool:
    """Whether the film is made."""
    return view.result("mux") is not None


def finished_by(step: str) -> bool:
    """Whether it is this step that makes the film."""
    return step == "mux"


def ready(view: JobView) -> list[str]:
    """Steps that may be sent now, most urgent first; steps that were sent already are not among them."""
    return [step for step in _ready(view) if step not in view.steps]


def _ready(view: JobView) -> Iterator[str]:
    follows = FOLLOWS if view.order.deadline is None else FOLLOWS_IN_TIME
    for step, before in follows.items():
        if all(view.result(name) is not None for name in before):
            yield step
    plan = view.result("plan")
    if plan is None or any(view.result(step) is None for step in follows):  # lost, and being made again
        return
    segments: list[list[int]] = plan["segments"]
    settled = _settled(view, plan["chunks"])
    encoded = [view.result(f"encode:{number}") is not None for number in range(len(segments))]
    if all(encoded):
        yield "mux"
        return
    yield from _encodes(view, segments, settled, encoded)
    yield from _renders(view, plan["chunks"], settled, first=segments[encoded.index(False)][0])


def _encodes(view: JobView, segments: list[list[int]], settled: list[str | None], encoded: list[bool]) -> Iterator[str]:
    room = MOST_QUEUED - _waiting(view, "encode")
    for number, (first, last) in enumerate(segments):
        if room <= 0:
            return
        if not encoded[number] and all(settled[first : last + 1]) and f"encode:{number}" not in view.steps:
            room -= 1
            yield f"encode:{number}"


def _renders(view: JobView, chunks: int, settled: list[str | None], first: int) -> Iterator[str]:
    room = MOST_QUEUED - _waiting(view, "render", "settle")
    for chunk in range(first, min(chunks, first + CHUNKS_AHEAD)):
        if room <= 0:
            return
        step = f"render:{chunk}"
        if view.result(step) is not None and settled[chunk] is None and chunk and settled[chunk - 1]:
            step = f"settle:{chunk}"
        if step not in view.steps:
            room -= 1
            yield step


def _waiting(view: JobView, *kinds: str) -> int:
    return sum(state.status == "sent" and kind_of(step) in kinds for step, state in view.steps.items())


def _settled(view: JobView, chunks: int) -> list[str | None]:
    """The step whose frames of a chunk stand, or None while that is not known."""
    settled: list[str | None] = []
    clean: bool | None = True  # whether the chunk before ends as the next one assumed
    for chunk in range(chunks):
        step = f"render:{chunk}" if clean else f"settle:{chunk}"
        result = view.result(step) if clean is not None else None
        settled.append(step if result is not None else None)
        clean = bool(result["clean"]) if result is not None else None
    return settled


def settled_step(view: JobView, chunk: int) -> str | None:
    """The step whose frames of this chunk stand; None while that is not known (any more)."""
    return _settled(view, chunk + 1)[chunk]


def needless_chunks(view: JobView) -> list[int]:
    """Chunks whose frames no segment needs any more, nor a chunk that is still to be settled."""
    plan = view.result("plan")
    if plan is None:
        return []
    open_segments = [n for n in range(len(plan["segments"])) if view.result(f"encode:{n}") is None]
    first = plan["segments"][open_segments[0]][0] if open_segments else plan["chunks"]
    return list(range(max(0, first - 1)))


def producer(key: str) -> str | None:
    """The step that makes an artifact again; None for an input, which nobody can make."""
    kind, number = key.partition(":")[0], key.rpartition("/")[2]
    if kind == "frames":
        return f"settle:{number[:-1]}" if number.endswith("s") else f"render:{number}"
    if kind == "segment":
        return f"encode:{number}"
    return {
        "sound": "sound",
        "soundtrack": "sound",
        "motion": "motion",
        "portrait": "portrait",
        "appearance": "appearance",
        "source": "appearance",
        "plan": "plan",
        "film": "mux",
    }.get(kind)
