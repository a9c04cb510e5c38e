"""Key frames of a scene: non-finite ones repeated in float32, batches, faults of the device on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.report import Report
from pipeline.runtime.faults import run_error
from pipeline.runtime.models import Models
from pipeline.runtime.recovery import ManagedModel
from pipeline.runtime.session import Session
from pipeline.scene import Scene
from pipeline.values import KeyFrame
from tests.pipeline.runtime.test_faults import ARENA_FULL
from tests.small_pack import HALF_LIMIT, build_small_pack, portrait_of, small_scene
from workers.chunks import Plan

SHIFTS = np.array([0.1, 0.2, 0.6, 0.3, 0.8, 0.2, 0.1, 0.4, 0.3, 0.7, 0.1, 0.2, 0.5, 0.3, 0.2, 0.6, 0.1, 0.4, 0.3])


def rendered(scene: Scene, report: Report | None = None) -> list[KeyFrame]:
    return list(scene.render(range(scene.count), portrait_of(), report or Report()))


def same(one: list[KeyFrame], other: list[KeyFrame]) -> bool:
    return all(a.index == b.index and np.array_equal(a.image, b.image) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("black", [False, True], ids=["not finite", "black"])
@pytest.mark.parametrize("batch", [1, 4])
def test_frames_that_overflow_in_float16_are_those_of_the_float32_graph(
    tmp_path: Path, batch: int, black: bool
) -> None:
    half = small_scene(build_small_pack(tmp_path / "half", half=True, black=black, batch=batch), SHIFTS)
    report = Report()
    found = rendered(half, report)
    over = [frame for frame, shift in enumerate(SHIFTS) if shift > HALF_LIMIT]
    # A batch shares a mean, so one frame that overflows spoils those beside it.
    spoiled = [frame for frame in range(len(SHIFTS)) if any(frame // batch == each // batch for each in over)]
    assert [repair.index for repair in report.repairs] == spoiled
    assert {repair.kind for repair in report.repairs} == {"rendered again"}
    assert all(("flat" if black else "not finite") in repair.reasons[0] for repair in report.repairs)
    whole = rendered(small_scene(build_small_pack(tmp_path / "whole", black=black, batch=batch), SHIFTS))
    for frame in spoiled:
        np.testing.assert_array_equal(found[frame].image, whole[frame].image)
    assert report.stages["generator"].runs == -(-len(SHIFTS) // batch) + len({frame // batch for frame in spoiled})


def test_the_float32_graph_is_not_opened_for_good_frames(tmp_path: Path) -> None:
    scene = small_scene(build_small_pack(tmp_path / "half", half=True), SHIFTS[:2])
    rendered(scene)
    assert scene.studio.models.opened == {("generator", None)}


def test_a_batch_is_one_run_of_its_frames(tmp_path: Path) -> None:
    """As the graph is written: each frame its own shift, and a trace of the mean of its batch."""
    scene = small_scene(build_small_pack(tmp_path / "small", batch=4), SHIFTS)
    report = Report()
    found = rendered(scene, report)
    assert report.stages["generator"].runs == 5
    shifts = np.concatenate([SHIFTS, [SHIFTS[-1]]])  # the last batch is filled up with its last frame
    means = shifts.reshape(5, 4).mean(1).repeat(4)
    feature = scene.appearance.features["feature"][0].transpose(1, 2, 0)
    for frame, key in enumerate(found):
        wanted = (feature + shifts[frame] * 0.1 + means[frame] * 1e-2).clip(0, 1) * 255
        assert np.abs(key.image - wanted).max() < 0.51


@pytest.mark.parametrize("half", [False, True])
def test_chunk_borders_do_not_change_frames(tmp_path: Path, half: bool) -> None:
    """The fleet's division, each chunk rendered by a worker that has only its part."""
    pack = build_small_pack(tmp_path / "small", batch=4, half=half)
    whole = rendered(small_scene(pack, SHIFTS))
    scene = small_scene(pack, SHIFTS)
    plan = Plan.divide(np.arange(len(SHIFTS)), len(SHIFTS), 250, scene.chunk)
    assert (plan.chunk_size, plan.chunks) == (8, 3)
    divided: list[KeyFrame] = []
    for number in range(plan.chunks):
        own = small_scene(pack, SHIFTS)
        last = own.assumed(plan.chunk(number - 1).tolist(), Report()) if number else None
        if last is not None and not half:
            assert np.array_equal(last.image, divided[-1].image)
        settled = divided[-1] if divided else None
        divided += own.render(plan.chunk(number).tolist(), portrait_of(), Report(), last=settled)
    assert same(divided, whole)


class Failing(Models):
    """Models whose sessions fail as ONNX Runtime's do: number of the run, over all sessions -> text."""

    def __init__(self, models: Models, texts: dict[int, str]) -> None:
        super().__init__(models.pack, models.options, residents=models._residents)
        self.texts = texts
        self.runs = 0
        self.made = 0

    def get(self, name: str, variant: str | None = None) -> ManagedModel:
        model = super().get(name, variant)
        model._make = self._session
        return model

    def _session(self, *args: Any, **options: Any) -> Session:
        session = Session(*args, **options)
        run = session.run
        self.made += 1

        def failing(*given: Any) -> Any:
            self.runs += 1
            if text := self.texts.pop(self.runs, None):
                raise run_error("generator.onnx", RuntimeError(text))
            return run(*given)

        session.run = failing  # type: ignore[method-assign]
        return session


def test_a_film_goes_on_after_a_fault_and_the_report_says_so(tmp_path: Path) -> None:
    pack = build_small_pack(tmp_path / "small")
    scene = small_scene(pack, SHIFTS)
    scene.studio.models = Failing(scene.studio.models, {5: ARENA_FULL})
    report = Report()
    assert same(rendered(scene, report), rendered(small_scene(pack, SHIFTS)))
    assert scene.studio.models.made == 2
    assert report.repairs == []
    assert [str(each) for each in report.recoveries()] == [
        "generator.onnx was opened again on cpu and the run repeated: out of memory"
    ]
    told = report.to_json()["stages"]["generator"]
    assert told["recoveries"] == [{"rung": "cpu", "model": "generator.onnx", "reason": "out of memory"}]
    assert told["first_runs"] == 2
    assert 0 < told["first_seconds"] < told["seconds"]
    assert told["predicted_memory"] == 1 << 20
    assert told["peak_memory"] > 10 << 20


def test_features_stay_where_the_model_runs(tmp_path: Path) -> None:
    """All key frames of a portrait use one set of values, also in the scene of a worker's next chunk."""
    scene = small_scene(build_small_pack(tmp_path / "small"), SHIFTS)
    session = scene.studio.models.get("generator")._opened()
    rendered(scene)
    following = Scene(scene.studio, scene.appearance, scene.motion, scene.count, scene.settings)
    rendered(following)
    assert len(session._held) == 1
