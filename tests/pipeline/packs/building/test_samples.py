"""What generators are calibrated on: a pack's own view of a portrait and a voice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pipeline.errors import NoFaceError
from pipeline.graphs.feeds import Port
from pipeline.packs.building.samples import FRAMES, collect
from pipeline.packs.store import open_pack
from tests.pipeline.packs.building.tiny_pack import untouched


def test_a_pack_sees_portraits_and_makes_motions() -> None:
    pack = open_pack()
    samples = collect(pack, (), 2)
    assert (len(samples.calibration), len(samples.judged)) == (2 * FRAMES, FRAMES)
    spec = pack.manifest.model("generator_256")
    for row in (*samples.calibration, *samples.judged):
        assert row.keys() == spec.inputs.keys()
    ports = {t.name: Port(tuple(side or 1 for side in t.shape), np.dtype(np.float32)) for t in spec.inputs.values()}
    (first, second, *_), dark = samples.feeds(spec, ports), samples.calibration[FRAMES]
    assert {name: array.shape for name, array in first.items()} == {name: port.shape for name, port in ports.items()}
    moved = np.abs(first["kp_driving"] - second["kp_driving"]).max()
    assert moved > 0.005  # the face speaks
    for role in pack.manifest.model("appearance").outputs:
        assert (samples.calibration[0][role] != dark[role]).any()  # another portrait


def test_given_portraits_count_and_must_show_a_face(tmp_path: Path) -> None:
    Image.new("RGB", (256, 256), "grey").save(tmp_path / "grey.png")
    with pytest.raises(NoFaceError):
        collect(open_pack(), [tmp_path / "grey.png"], 2)


def test_a_pack_that_cannot_gives_seeded_ones_and_says_why(tmp_path: Path) -> None:
    pack = open_pack(str(untouched(tmp_path / "export")))
    samples = collect(pack, (), 2)
    assert "seeded" in samples.origin
    assert "speech" in samples.origin
    ports = {"x": Port((2, 3), np.dtype(np.float32))}
    seeded, others = (samples.feeds(pack.manifest.model("exported"), ports, judged=judged) for judged in (False, True))
    assert seeded[0]["x"].shape == (2, 3)
    assert not any((row["x"] == other["x"]).all() for row in seeded for other in others)
