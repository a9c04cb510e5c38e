"""What doctor says of onnxruntime: which build is installed, and which rungs of the ladder run a model here."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import TalkreelError
from ..packs.store import FACES_PACK, open_pack
from ..runtime.builds import builds_problem, installed_builds
from ..runtime.ladder import Ladder
from ..runtime.opening import TRIAL_SIDE
from ..runtime.options import RuntimeOptions
from ..runtime.providers import CPU, Rung, default_rungs, installed_kinds
from ..runtime.session import Session

TRIAL = "detector"
"""Of the face models, which are with every installation: small, with convolutions."""


@dataclass
class RuntimeFindings:
    """`builds`: installed distributions. `default`: the ladder where none is stated. `providers`: by kind, what
    became of a trial. `problems`: what is wrong, one line each, with its cure."""

    builds: list[str] = field(default_factory=list)
    default: list[str] = field(default_factory=list)
    providers: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def examine_runtime() -> RuntimeFindings:
    """Look, and run one small model on every provider of the installed build. Providers that are used unless the user
    states others must work; of the others it is only said whether they do.

    Raises:
        RuntimeMissingError: no onnxruntime.
    """
    builds = installed_builds()
    default = default_rungs()
    found = RuntimeFindings([str(build) for build in builds], [str(rung) for rung in default])
    if problem := builds_problem(builds):
        found.problems.append(problem)
    for kind in installed_kinds():
        rung = Rung(kind)
        text, problem = _trial(rung)
        if problem is not None and rung in default:
            found.problems.append(problem)
        found.providers[kind] = text if problem is None or rung in default else f"{text} ({problem})"
    return found


def _trial(rung: Rung) -> tuple[str, str | None]:
    """What became of running a model on a rung, and what is wrong."""
    pack = open_pack(FACES_PACK)
    spec = pack.manifest.model(TRIAL)
    ladder = Ladder(RuntimeOptions(threads=1, providers=tuple(dict.fromkeys((rung, CPU)))))
    try:
        session = Session(pack.model_path(spec), spec, ladder)
        session.run({role: tensor.zeros(TRIAL_SIDE) for role, tensor in spec.inputs.items()})
    except TalkreelError as error:
        return "not usable", str(error)
    place = session.place
    problem = next(map(str, place.falls), None)
    if place.rung != rung:
        return "not usable", problem
    return ("usable" if place.placement is None else f"usable ({place.placement})"), problem
