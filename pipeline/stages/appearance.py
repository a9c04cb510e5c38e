"""Stage 4: appearance features and source keypoints, once a portrait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from PIL import Image

from ..errors import ModelError
from ..packs.specs import SourceSpec
from ..pose import degrees_from_bins, rotation_matrix
from ..runtime.session import Array, Model
from ..values import F32, U8, Appearance, Portrait, Source


def network_image(pixels: U8, size: int) -> F32:
    """[S, S, 3] uint8 RGB -> [1, 3, size, size] float32 0..1, averaged over areas where it shrinks."""
    if pixels.shape[0] != size:
        pixels = np.asarray(Image.fromarray(pixels).resize((size, size), Image.Resampling.BOX))
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None], np.float32) / np.float32(255)


def find_source(portrait: Portrait, model: Model, spec: SourceSpec) -> Source:
    """Source keypoints and what is this person's own.

    Args:
        model: motion extractor (image in) or portrait graph (landmarks in), with the outputs `kp`,
            `scale`, `t`, `exp`, the pose as `rotation` or as bins `pitch`, `yaw`, `roll`, and, where the
            pack has them, `basis` and `closed_mouth`.

    Raises:
        ModelError: the model gave values that are not finite.
    """
    if spec.input == "landmarks":
        outputs = model.run({"landmarks": portrait.landmarks[None]})
    else:
        outputs = model.run({"image": network_image(portrait.pixels, model.side("image"))})
    for role, array in outputs.items():
        if not np.isfinite(array).all():
            raise ModelError(f"the source model's {role} is not finite for this portrait; use another picture")
    points = (spec.keypoints, 3)
    kp, expression = _f32(outputs["kp"], points), _f32(outputs["exp"], points)
    scale, translation = float(outputs["scale"].reshape(-1)[0]), _f32(outputs["t"], (3,))
    rotation = _rotation(outputs, spec)
    keypoints = scale * (kp @ rotation + expression)
    keypoints[:, :2] += translation[:2]
    return Source(
        keypoints=keypoints.astype(np.float32),
        kp=kp,
        rotation=rotation,
        scale=scale,
        translation=translation,
        expression=expression,
        basis=_f32(outputs["basis"], (-1, *points)) if "basis" in outputs else None,
        closed_mouth=_f32(outputs["closed_mouth"], points) if "closed_mouth" in outputs else None,
    )


def _f32(array: Array, shape: tuple[int, ...]) -> F32:
    return np.ascontiguousarray(array.reshape(shape), np.float32)


def _rotation(outputs: Mapping[str, Array], spec: SourceSpec) -> F32:
    if spec.bins is None:
        return _f32(outputs["rotation"], (3, 3))
    bins = [degrees_from_bins(_f32(outputs[name], (-1,)), spec.bins) for name in ("pitch", "yaw", "roll")]
    return rotation_matrix(np.array(bins, np.float32))


def close_mouth(source: Source, ratio: float, model: Model) -> Source:
    """The source with what closes its mouth at rest (LivePortrait's lip retargeting).

    Args:
        ratio: how far the mouth is open in the portrait, see `faces.lips`.
        model: takes `keypoints` [1, 3 K + 2] (source, lip ratio now, lip ratio wanted) and gives `delta` [1, 3 K].

    Raises:
        ModelError: the model gave values that are not finite.
    """
    given = np.concatenate([source.keypoints.reshape(-1), [ratio, 0]]).astype(np.float32)
    delta = _f32(model.run({"keypoints": given[None]})["delta"], source.keypoints.shape)
    if not np.isfinite(delta).all():
        raise ModelError("the lip model's delta is not finite for this portrait; use another picture")
    return replace(source, lip_closing=delta)


def extract_appearance(portrait: Portrait, source: Source, model: Model) -> Appearance:
    """Appearance features, by the roles under which the generator takes them.

    Args:
        model: takes `image` [1, 3, S, S] and, where its spec says so, `kp_source` [1, K, 3].
    """
    image = network_image(portrait.pixels, model.side("image"))
    return Appearance(model.run({"image": image, "kp_source": source.keypoints[None]}), source)
