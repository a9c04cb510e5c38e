"""The embedded pack's face graphs: rebuilt, run on the sample portrait, and judged by an independent model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from PIL import Image

from pipeline.faces.crop import CropSpec, face_crop, in_crop_units
from pipeline.faces.finder import FaceFinder
from pipeline.faces.sampling import sample_square
from pipeline.packs.embedded.authoring.anatomy import (
    EYES,
    LOWER_INNER,
    RIGID,
    UNITS,
    UPPER_INNER,
)  # fmt: skip
from pipeline.packs.embedded.authoring.eye_patches import MARGIN as LID_MARGIN
from pipeline.packs.embedded.authoring.eye_patches import moved_edges
from pipeline.packs.embedded.authoring.face import build_face_graphs
from pipeline.packs.embedded.authoring.guard import LIP_GUARD, MARGIN, guarded
from pipeline.packs.embedded.authoring.lid_curves import COLUMNS
from pipeline.packs.embedded.authoring.warp_weights import FACTORS, OF_COMMON, OF_HEAD, OF_RIGID
from pipeline.packs.embedded.authoring.windows import COARSE_STEP, SIZE, SLITS, STEP
from pipeline.packs.embedded.authoring.writer import Graph
from pipeline.packs.pack import Pack
from pipeline.runtime.ladder import Ladder
from pipeline.runtime.options import RuntimeOptions
from tests.faces.measures.judging import JUDGED_POINTS, SCORES

ROOT = Path(__file__).parents[3]
PACK = ROOT / "pipeline" / "packs" / "embedded"
GRAPHS = ["portrait.onnx", "appearance.onnx", "generator_256.onnx", "generator_512.onnx"]
F32 = NDArray[np.float32]
U8 = NDArray[np.uint8]

OO = {"mouthPucker": 1.0, "mouthFunnel": 0.35, "mouthSmileLeft": -0.6, "mouthSmileRight": -0.6}


def session(path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run(model: ort.InferenceSession, **inputs: F32) -> dict[str, F32]:
    return dict(zip((o.name for o in model.get_outputs()), model.run(None, inputs), strict=True))


def both(name: str, value: float) -> dict[str, float]:
    return {f"{name}Left": value, f"{name}Right": value}


def turn(yaw: float = 0.0, pitch: float = 0.0, roll: float = 0.0) -> F32:
    """Head rotation for row vectors, from degrees."""
    y, p, r = np.radians([yaw, pitch, roll])
    about_y = np.array([[np.cos(y), 0, np.sin(y)], [0, 1, 0], [-np.sin(y), 0, np.cos(y)]])
    about_x = np.array([[1, 0, 0], [0, np.cos(p), np.sin(p)], [0, -np.sin(p), np.cos(p)]])
    about_z = np.array([[np.cos(r), np.sin(r), 0], [-np.sin(r), np.cos(r), 0], [0, 0, 1]])
    return (about_y @ about_x @ about_z).astype(np.float32)


def forward_maps(tensors: dict[str, F32], moves: F32) -> list[tuple[F32, int]]:
    """Displacements [h, w, 2] in pixels of the nodes of the whole crop and of SLITS, for the keypoints' [478, 2]; and
    the pixels between nodes."""
    factors = (tensors["keypoint_weights"] @ moves)[FACTORS - OF_HEAD :]
    expressed = ((tensors["crop_weights"] - 128) * tensors["crop_steps"]) @ factors[OF_RIGID:OF_COMMON]
    crop = (tensors["crop_rigid"] @ factors[:OF_RIGID] + expressed).reshape(SIZE // COARSE_STEP, -1, 2)
    slits = (tensors["head_weights"] @ factors).reshape(SLITS.height // STEP, -1, 2)
    return [(crop, COARSE_STEP), (slits, STEP)]


@dataclass
class Puppet:
    """The sample portrait with everything known about it, and the generators."""

    photo: F32
    """[512, 512, 3] RGB 0..1."""
    landmarks: F32
    """[478, 3] in crop units."""
    portrait: dict[str, F32]
    tensors: dict[str, F32]
    generators: dict[int, ort.InferenceSession]

    def keypoints(self, units: dict[str, float], *, closed: float = 0.0, rotation: F32 | None = None) -> F32:
        """[1, 478, 3] driving keypoints for coefficients of the expression basis."""
        p = self.portrait
        face = p["kp"][0] + closed * p["closed_mouth"][0]
        for name, value in units.items():
            face = face + value * p["basis"][0, UNITS.index(name)]
        head = p["rotation"][0] if rotation is None else rotation @ p["rotation"][0]
        placed: F32 = p["scale"] * (face @ head) + p["t"]
        return placed[None].astype(np.float32)

    def frame(self, driving: F32, size: int = 512) -> F32:
        """[size, size, 3] RGB 0..1."""
        source = self.keypoints({})
        image = run(self.generators[size], **self.tensors, kp_source=source, kp_driving=driving)["image"]
        assert image.shape == (1, 3, size, size)
        return image[0].transpose(1, 2, 0)

    def act(self, units: dict[str, float], *, closed: float = 0.0) -> F32:
        return self.frame(self.keypoints(units, closed=closed))


@dataclass
class Judge:
    """Finds the face in a picture again and says what it does."""

    finder: FaceFinder
    blendshapes: ort.InferenceSession

    def points(self, image: F32) -> NDArray[np.float64]:
        """[478, 3] in pixels."""
        (face,) = self.finder.find(pixels(image))
        return face.points

    def scores(self, image: F32) -> dict[str, float]:
        points = self.points(image)[JUDGED_POINTS, :2][None].astype(np.float32)
        values = self.blendshapes.run(None, {"serving_default_input_points:0": points})[0]
        return dict(zip(SCORES, values.tolist(), strict=True))


def pixels(image: F32) -> U8:
    return np.round(np.clip(image, 0, 1) * 255).astype(np.uint8)


def psnr(a: F32, b: F32) -> float:
    return float(-10 * np.log10(np.mean((a.astype(np.float64) - b) ** 2)))


@pytest.fixture(scope="module")
def judge() -> Judge:
    finder = FaceFinder.open(Pack.open(ROOT / "pipeline" / "packs" / "faces"), Ladder(RuntimeOptions(threads=1)))
    return Judge(finder, session(ROOT / "tests" / "data" / "face_blendshapes.onnx"))


def puppet_of(picture: U8, finder: FaceFinder) -> Puppet:
    (face,) = finder.find(picture)
    crop = face_crop(face.points, CropSpec.read(Pack.open(PACK).section("crop")))
    photo = sample_square(picture, crop, 512).astype(np.float32) / np.float32(255)
    landmarks = in_crop_units(face.points, crop)
    portrait = run(session(PACK / "portrait.onnx"), landmarks=landmarks[None])
    found = Puppet(photo, landmarks, portrait, {}, {s: session(PACK / f"generator_{s}.onnx") for s in (256, 512)})
    image = np.ascontiguousarray(photo.transpose(2, 0, 1)[None])
    kept = run(session(PACK / "appearance.onnx"), image=image, kp_source=found.keypoints({}))
    found.tensors.update({name: tensor.astype(np.float32) for name, tensor in kept.items()})
    return found


@pytest.fixture(scope="module")
def puppet(judge: Judge) -> Puppet:
    with Image.open(ROOT / "samples" / "portrait.png") as opened:
        return puppet_of(np.asarray(opened.convert("RGB")), judge.finder)


@pytest.fixture(scope="module")
def at_rest(puppet: Puppet, judge: Judge) -> dict[str, float]:
    return judge.scores(puppet.photo)


def test_rebuilt_bit_for_bit(tmp_path: Path) -> None:
    build_face_graphs(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(GRAPHS)
    for name in GRAPHS:
        assert (tmp_path / name).read_bytes() == (PACK / name).read_bytes(), name


@pytest.mark.parametrize("name", GRAPHS)
def test_standard_operators_and_nothing_above_rank_4(name: str) -> None:
    model = onnx.load(PACK / name)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 20)]
    assert {node.domain for node in model.graph.node} == {""}
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    ranks = {
        value.name: len(value.type.tensor_type.shape.dim)
        for value in (*inferred.graph.input, *inferred.graph.output, *inferred.graph.value_info)
        if value.type.tensor_type.HasField("shape")
    }
    made = {name for node in model.graph.node for name in node.output}
    assert made <= set(ranks)
    assert max(ranks.values()) <= 4


def test_generators_take_what_the_appearance_gives() -> None:
    def shapes(values: Any) -> dict[str, list[int]]:
        return {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}

    given = shapes(onnx.load(PACK / "appearance.onnx").graph.output)
    for size in (256, 512):
        taken = shapes(onnx.load(PACK / f"generator_{size}.onnx").graph.input)
        points = {name: taken.pop(name) for name in ("kp_source", "kp_driving")}
        assert taken == given
        assert points == {"kp_source": [1, 478, 3], "kp_driving": [1, 478, 3]}


def test_features_are_small() -> None:
    features = onnx.load(PACK / "appearance.onnx").graph.output
    shapes = [[side.dim_value for side in value.type.tensor_type.shape.dim] for value in features]
    types = [onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type) for value in features]
    assert sum(np.dtype(kind).itemsize * np.prod(shape) for kind, shape in zip(types, shapes, strict=True)) < 8e6


def test_portrait_gives_the_landmarks_back(puppet: Puppet) -> None:
    p = puppet.portrait
    placed = p["scale"] * (p["kp"][0] @ p["rotation"][0] + p["exp"][0]) + p["t"]
    np.testing.assert_allclose(placed[:, :2], puppet.landmarks[:, :2], atol=1e-6)
    np.testing.assert_allclose(p["rotation"][0] @ p["rotation"][0].T, np.eye(3), atol=1e-5)
    assert np.linalg.det(p["rotation"][0]) > 0
    assert p["t"][0, 2] == 0


def test_portrait_removes_the_head_pose(puppet: Puppet) -> None:
    upright = puppet.portrait
    tilted = run(session(PACK / "portrait.onnx"), landmarks=puppet.keypoints({}, rotation=turn(10, -5)))
    np.testing.assert_allclose(tilted["rotation"][0], turn(10, -5) @ upright["rotation"][0], atol=0.04)
    np.testing.assert_allclose(tilted["scale"], upright["scale"], rtol=0.04)
    # z is bounded anew in the turned view and the pivot moves a little with it: compare shapes, not places.
    shapes = [kp[:, :2] - kp[:, :2].mean(0) for kp in (upright["kp"][0], tilted["kp"][0])]
    assert np.abs(shapes[0] - shapes[1]).max() < 0.05


def test_blink_just_closes_these_lids(puppet: Puppet) -> None:
    kp, basis = puppet.portrait["kp"][0], puppet.portrait["basis"][0]
    for eye, name in zip(EYES, ("eyeBlinkRight", "eyeBlinkLeft"), strict=True):
        closed = (kp + basis[UNITS.index(name)])[:, :2]
        axis = closed[eye.corners[1]] - closed[eye.corners[0]]
        u, v = closed @ axis, closed @ np.array([-axis[1], axis[0]])
        meet = np.interp(u[eye.upper], u[eye.lower_edge], v[eye.lower_edge])
        np.testing.assert_allclose(v[eye.upper], meet, atol=0.03 * float(axis @ axis))
        assert np.abs(basis[UNITS.index(name)][eye.iris]).max() == 0


def test_closed_mouth_closes_and_leaves_a_closed_one(puppet: Puppet) -> None:
    kp, offset = puppet.portrait["kp"][0], puppet.portrait["closed_mouth"][0]
    closed = kp + offset
    assert np.linalg.norm(kp[UPPER_INNER] - kp[LOWER_INNER], axis=1).max() > 0.05
    np.testing.assert_allclose(closed[UPPER_INNER], closed[LOWER_INNER], atol=1e-6)
    again = run(session(PACK / "portrait.onnx"), landmarks=puppet.keypoints({}, closed=1.0))["closed_mouth"]
    assert np.abs(again).max() < 1e-4


@pytest.mark.parametrize("size", [256, 512])
def test_undriven_the_photo_returns(puppet: Puppet, size: int) -> None:
    photo = puppet.photo.reshape(size, 512 // size, size, 512 // size, 3).mean((1, 3))
    assert psnr(puppet.frame(puppet.keypoints({}), size), photo) > 45


def test_small_generator_shows_the_same(puppet: Puppet) -> None:
    driving = puppet.keypoints({"jawOpen": 0.4, **both("eyeBlink", 0.5)}, rotation=turn(5, 3))
    pooled = puppet.frame(driving).reshape(256, 2, 256, 2, 3).mean((1, 3))
    assert psnr(puppet.frame(driving, 256), pooled) > 32


def test_rest_reads_like_the_portrait(puppet: Puppet, judge: Judge, at_rest: dict[str, float]) -> None:
    read = judge.scores(puppet.act({}))
    assert {name: read[name] for name in SCORES if abs(read[name] - at_rest[name]) > 0.1} == {}


def test_jaw_opens_as_asked(puppet: Puppet, judge: Judge) -> None:
    read = [judge.scores(puppet.act({"jawOpen": asked}))["jawOpen"] for asked in (0, 0.25, 0.5, 0.75)]
    assert np.all(np.diff(read) > 0.04)
    assert read[0] < 0.1
    assert read[-1] > 0.3


def test_lips_pucker_and_stop_smiling(puppet: Puppet, judge: Judge, at_rest: dict[str, float]) -> None:
    read = judge.scores(puppet.act(OO))
    assert at_rest["mouthPucker"] < 0.1 < 0.4 < read["mouthPucker"]
    assert at_rest["mouthSmileLeft"] > 0.7
    assert max(read["mouthSmileLeft"], read["mouthSmileRight"]) < 0.1
    halfway = judge.scores(puppet.act(both("mouthSmile", -0.9)))  # a smiling face has a small unit
    assert 0.05 < halfway["mouthSmileLeft"] < at_rest["mouthSmileLeft"] - 0.2


@pytest.mark.parametrize(("closing", "open_eye"), [("Left", "Right"), ("Right", "Left")])
def test_an_eye_closes_alone(
    puppet: Puppet, judge: Judge, at_rest: dict[str, float], closing: str, open_eye: str
) -> None:
    read = judge.scores(puppet.act({f"eyeBlink{closing}": 1.0}))
    closes, follows = (read[f"eyeBlink{side}"] - at_rest[f"eyeBlink{side}"] for side in (closing, open_eye))
    assert closes > 0.12
    assert follows < closes / 2


def test_both_eyes_close_by_degrees(puppet: Puppet, judge: Judge) -> None:
    read = [judge.scores(puppet.act(both("eyeBlink", asked))) for asked in (0, 0.6, 1.0)]
    for side in ("Left", "Right"):
        opened, narrow, closed = (scores[f"eyeBlink{side}"] for scores in read)
        assert opened < 0.1
        assert opened + 0.05 < narrow < closed - 0.05
        assert closed > 0.35


def test_a_closed_lid_is_skin_and_all_else_stays(puppet: Puppet) -> None:
    rest, closed = puppet.act({}), puppet.act(both("eyeBlink", 1.0))
    changed = np.abs(closed - rest).max(2) > 2 / 255
    for eye in EYES:
        points = (puppet.landmarks[:, :2] + 1) * 256 - 0.5
        left, right = points[eye.corners]
        width = right[0] - left[0]
        rows, columns = np.mgrid[0:512, 0:512]
        middle = (left + right) / 2
        far = np.hypot((columns - middle[0]) / 1.1, rows - middle[1]) > width * 0.85
        changed &= far
        x, top, bottom = round(points[eye.iris[0], 0]), points[eye.upper[3], 1], points[eye.lower[3], 1]
        lid, iris = np.s_[round(top + 2) : round((top + bottom) / 2), x - 4 : x + 5], round(points[eye.iris[0], 1])
        cheek = rest[round(bottom + 0.35 * width), x]
        assert rest[iris, x].mean() < 0.5 * cheek.mean()
        assert np.abs(closed[lid] - cheek).max() < 0.2
        assert closed[lid].std((0, 1)).max() < 0.05
    assert not changed.any()


def test_irises_go_as_far_as_asked(puppet: Puppet, judge: Judge) -> None:
    asked, irises = np.linspace(-1, 1, 5), [eye.iris[0] for eye in EYES]
    aside = [{"eyeLookOutLeft": max(x, 0), "eyeLookInRight": max(x, 0),
              "eyeLookInLeft": max(-x, 0), "eyeLookOutRight": max(-x, 0)} for x in asked.tolist()]  # fmt: skip
    found = np.array([judge.points(puppet.act(units))[irises, 0] for units in aside])
    for read in found.T:
        assert np.corrcoef(asked, read)[0, 1] > 0.95


def test_closed_mouth_reads_closed(puppet: Puppet, judge: Judge) -> None:
    image = puppet.act({}, closed=1.0)
    points = judge.points(image)
    assert judge.scores(image)["jawOpen"] < 0.05
    assert np.linalg.norm(points[13, :2] - points[14, :2]) < 1.5


@pytest.mark.parametrize(
    ("units", "closed"), [({"jawOpen": 0.6}, 0.0), ({}, 1.0), ({}, 0.8)], ids=["wide open", "closed", "hardly open"]
)
def test_other_mouths_return_open_and_close(
    puppet: Puppet, judge: Judge, units: dict[str, float], closed: float
) -> None:
    """The sample with another mouth, taken as a portrait of its own."""
    other = puppet_of(pixels(puppet.act(units, closed=closed)), judge.finder)
    assert psnr(other.act({}), other.photo) > 45
    assert judge.scores(other.act({}, closed=1.0))["jawOpen"] < 0.05
    opened = judge.points(other.act({"jawOpen": 0.4}, closed=1.0))
    assert np.linalg.norm(opened[13, :2] - opened[14, :2]) > 15


def test_gaze_turns_the_irises_and_nothing_else(puppet: Puppet, judge: Judge) -> None:
    aside = puppet.act({"eyeLookOutLeft": 1.0, "eyeLookInRight": 1.0})  # to the right of the picture
    irises = [eye.iris[0] for eye in EYES]
    moved = judge.points(aside)[irises, 0] - judge.points(puppet.photo)[irises, 0]
    assert moved.min() > 3
    changed = np.abs(aside - puppet.act({})).max(2) > 1e-3
    rows, columns = np.nonzero(changed)
    corners = (puppet.landmarks[[*EYES[0].corners, *EYES[1].corners], :2] + 1) * 256
    assert columns.min() > corners[:, 0].min() - 4
    assert columns.max() < corners[:, 0].max() + 4
    assert np.abs(rows - corners[:, 1].mean()).max() < 20


@pytest.mark.parametrize(
    ("yaw", "pitch", "roll"), [(12, 0, 0), (-12, 0, 0), (12, 8, 0), (-12, -8, 0), (0, 0, 8), (0, 0, -8)]
)
def test_head_turns_without_a_fold(puppet: Puppet, judge: Judge, yaw: float, pitch: float, roll: float) -> None:
    rest, driving = puppet.keypoints({}), puppet.keypoints({}, rotation=turn(yaw, pitch, roll))
    image = puppet.frame(driving)
    moves = (driving - rest)[0, :, :2] * 256
    seen = (judge.points(image) - judge.points(puppet.photo))[RIGID, :2]
    assert np.abs(seen - moves[RIGID]).mean() < 2.5
    assert np.abs(moves[RIGID]).mean() > 6
    for forward, step in forward_maps(puppet.tensors, moves):
        down, across = np.diff(forward, axis=0)[:, :-1] / step, np.diff(forward, axis=1)[:-1] / step
        determinant = (1 + across[..., 0]) * (1 + down[..., 1]) - across[..., 1] * down[..., 0]
        assert determinant.min() > 0.4
    for border in (np.s_[:2], np.s_[-2:], np.s_[:, :2], np.s_[:, -2:]):
        np.testing.assert_allclose(image[border], puppet.photo[border], atol=0.02)


@pytest.mark.parametrize(
    "units", [{"jawOpen": 0.7}, {"browInnerUp": 1.0}, both("mouthSmile", 0.7), both("browDown", 1.0)], ids=str
)
def test_hair_and_background_stay_when_the_face_moves(puppet: Puppet, units: dict[str, float]) -> None:
    change = np.abs(puppet.act(units) - puppet.act({})).max(2)
    assert change[:90].max() < 0.002
    assert change[:300, :90].max() < 0.002
    assert change[:300, -90:].max() < 0.002
    assert max(change[border].max() for border in (np.s_[-3:], np.s_[:, :3], np.s_[:, -3:])) < 0.002
    assert change.max() > 0.1


def test_lips_never_cross(puppet: Puppet) -> None:
    """A sweep far beyond what closes them: gaps stay at touching and change by small steps."""
    g = Graph("guard")
    source, driving = g.input("source", [478, 2]), g.input("driving", [478, 2])
    g.output("points", guarded(g, source, driving), [478, 2])
    model = ort.InferenceSession(g.model().SerializeToString(), providers=["CPUExecutionProvider"])
    rest = puppet.keypoints({})[0, :, :2]
    gaps, wanted = [], []
    for strength in np.linspace(0, 3, 61):
        asked = puppet.keypoints({"mouthClose": strength})[0, :, :2]
        points = run(model, source=rest, driving=asked)["points"]
        gaps.append(points[LIP_GUARD.lower, 1] - points[LIP_GUARD.upper, 1])
        wanted.append(asked[LIP_GUARD.lower, 1] - asked[LIP_GUARD.upper, 1])
    walk, steps = np.array(gaps), np.abs(np.diff(wanted, axis=0))
    np.testing.assert_allclose(walk[0], rest[LIP_GUARD.lower, 1] - rest[LIP_GUARD.upper, 1], atol=1e-6)
    assert walk.min() > -2 * MARGIN
    assert walk[-1].max() < 2 * MARGIN
    assert np.min(wanted) < -10 * MARGIN
    assert np.all(np.abs(np.diff(walk, axis=0)) < steps + 0.1 * MARGIN)


def test_lids_never_cross(puppet: Puppet) -> None:
    """The same sweep for the lids' edges, in pixels: they close at 1 and stay so."""
    g = Graph("lids")
    shapes = {"edges": [2, 2, COLUMNS], "motion": [2, 2, COLUMNS, 7], "lids": [28, 2], "frames": [2, 4, 2]}
    edges, _ = moved_edges(g, *(g.input(name, shape) for name, shape in shapes.items()))
    g.output("edges_then", edges, shapes["edges"])
    model = ort.InferenceSession(g.model().SerializeToString(), providers=["CPUExecutionProvider"])
    tensors, rest, gaps = puppet.tensors, puppet.keypoints({})[0, :, :2], []
    for strength in np.linspace(0, 3, 61):
        moves = (puppet.keypoints(both("eyeBlink", strength))[0, :, :2] - rest) * 256
        moved = run(model, edges=tensors["lid_edges"], motion=tensors["lid_motion"],
                    lids=tensors["lid_weights"] @ moves, frames=tensors["eye_frames"])["edges_then"]  # fmt: skip
        gaps.append(moved[:, 1] - moved[:, 0])
    walk = np.array(gaps)
    np.testing.assert_allclose(walk[0], tensors["lid_edges"][:, 1] - tensors["lid_edges"][:, 0], atol=1e-4)
    assert walk[0].max() > 12
    assert walk.min() > -0.5 * LID_MARGIN  # at the corners, where there is no gap to keep
    assert walk[20:].max() < 0.5 * LID_MARGIN
    assert np.diff(walk, axis=0).max() < 1e-3


def test_a_double_blink_looks_like_one(puppet: Puppet) -> None:
    once, twice = (puppet.act(both("eyeBlink", strength)) for strength in (1.0, 2.0))
    assert psnr(once, twice) > 40  # the fold above the lid moves on
    assert psnr(once, puppet.act({})) < 40


@pytest.mark.parametrize("value", [0.0, 1e4, -1e30])
def test_any_keypoints_give_a_picture(puppet: Puppet, value: float) -> None:
    for driving in (np.full((1, 478, 3), value, np.float32), puppet.keypoints({}) * np.float32(value)):
        image = puppet.frame(driving)
        assert np.isfinite(image).all()
        assert image.min() >= 0
        assert image.max() <= 1


def test_slits_hold_mouth_and_eyes(puppet: Puppet) -> None:
    points = (puppet.landmarks[[*UPPER_INNER, *LOWER_INNER, *EYES[0].corners, *EYES[1].corners], :2] + 1) * 256
    assert points[:, 0].min() - 40 > SLITS.left
    assert points[:, 0].max() + 40 < SLITS.right
    assert points[:, 1].min() - 40 > SLITS.top
    assert points[:, 1].max() + 60 < SLITS.bottom
