"""From Blender's picture with alpha to a photograph: background out of focus, sensor noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter

from .person import Person


def develop(raw: Path, person: Person, seed: int) -> Image.Image:
    random = np.random.default_rng(seed)
    with Image.open(raw) as opened:
        picture = np.asarray(opened.convert("RGBA"), np.float64) / 255
    height, width = picture.shape[:2]
    alpha = picture[..., 3:]
    scene = picture[..., :3] * alpha + background(person, width, height, random) * (1 - alpha)
    # Grain is softer than a pixel, as after a camera's own noise filter, and stronger in the shade.
    grain = random.normal(size=scene.shape) * [0.8, 0.6, 1.0] + random.normal(size=(height, width, 1))
    soft = (grain + np.roll(grain, 1, 0) + np.roll(grain, 1, 1) + np.roll(grain, (1, 1), (0, 1))) / 2
    scene = scene + soft * person.grain / 255 * (1.2 - 0.6 * scene)
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    scene = scene * (1 - 0.10 * (x**2 + y**2)[..., None])
    return Image.fromarray((np.clip(scene, 0, 1) * 255 + 0.5).astype(np.uint8))


def background(person: Person, width: int, height: int, random: np.random.Generator) -> np.ndarray:
    """[height, width, 3] of a room far out of focus, from the first colour to the second."""
    first, second = (np.array(c) for c in person.background)
    y, x = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j]
    part = np.clip(0.75 * y + 0.35 * (x - 0.5) * random.choice([-1, 1]) + 0.1, 0, 1)[..., None]
    scene = first * (1 - part) + second * part
    for _ in range(9):
        cx, cy, r = random.random() * 1.2 - 0.1, random.random() * 0.9 - 0.1, 0.06 + 0.16 * random.random()
        square = np.abs(x - cx) ** 4 + np.abs((y - cy) * height / width) ** 4 < r**4
        disc = (x - cx) ** 2 + ((y - cy) * height / width) ** 2 < r**2
        shape = square if random.random() < 0.6 else disc
        shade = (first if random.random() < 0.5 else second) * (0.65 + 0.8 * random.random())
        scene = np.where(shape[..., None], 0.55 * scene + 0.45 * shade, scene)
    image = Image.fromarray((np.clip(scene, 0, 1) * 255).astype(np.uint8))
    return np.asarray(image.filter(ImageFilter.GaussianBlur(height / 26)), np.float64) / 255
