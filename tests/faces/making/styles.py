"""Skins, hair colours, hair styles and lights that the persons share."""

from __future__ import annotations

import numpy as np

from .person import Hair, Light, Skin

PALE = Skin((0.64, 0.43, 0.34), (0.54, 0.29, 0.22), (0.62, 0.25, 0.20), (0.52, 0.19, 0.17))
FAIR = Skin((0.56, 0.35, 0.25), (0.44, 0.23, 0.15), (0.54, 0.21, 0.15), (0.43, 0.15, 0.13))
RUDDY = Skin((0.55, 0.32, 0.24), (0.46, 0.21, 0.15), (0.55, 0.15, 0.11), (0.42, 0.14, 0.12), blush=0.8, wrinkles=0.25)
OLIVE = Skin((0.43, 0.26, 0.165), (0.31, 0.16, 0.09), (0.42, 0.15, 0.10), (0.34, 0.115, 0.095), blush=0.35)
GOLD = Skin((0.53, 0.34, 0.21), (0.41, 0.23, 0.13), (0.50, 0.20, 0.13), (0.43, 0.15, 0.12), blush=0.35)
TAN = Skin((0.33, 0.185, 0.11), (0.22, 0.11, 0.06), (0.33, 0.11, 0.07), (0.28, 0.09, 0.075), blush=0.3)
BROWN = Skin(
    (0.20, 0.105, 0.062), (0.125, 0.058, 0.033), (0.20, 0.07, 0.045), (0.20, 0.065, 0.055), 0.25, roughness=0.5
)
DARK = Skin(
    (0.095, 0.048, 0.030), (0.055, 0.026, 0.016), (0.10, 0.034, 0.022), (0.12, 0.04, 0.036), 0.2, roughness=0.49
)
CHILD = Skin((0.62, 0.41, 0.31), (0.55, 0.31, 0.22), (0.62, 0.24, 0.18), (0.54, 0.19, 0.16), blush=0.75, sockets=0.2)
OLD = Skin((0.54, 0.35, 0.26), (0.40, 0.20, 0.14), (0.50, 0.20, 0.15), (0.40, 0.18, 0.15), sockets=0.55, wrinkles=0.55)

BLACK, BRUNET, CHESTNUT = (0.012, 0.010, 0.009), (0.040, 0.021, 0.012), (0.10, 0.048, 0.022)
BLOND, RED, GRAY, WHITE = (0.40, 0.25, 0.11), (0.22, 0.060, 0.018), (0.20, 0.195, 0.19), (0.55, 0.54, 0.52)
BROWN_EYES, BLUE, GREEN, HAZEL, DARK_EYES = (
    (0.09, 0.045, 0.02),
    (0.12, 0.17, 0.23),
    (0.10, 0.12, 0.07),
    (0.12, 0.08, 0.035),
    (0.03, 0.016, 0.009),
)

BROWS = Hair(
    "brows",
    460,
    {"length": 0.10, "comb": "brow", "steps": 4, "lift": 0.12, "layer": 0.015, "wave": 0.1, "radius": 0.0026},
)
BUZZ = Hair("scalp", 22000, {"length": 0.09, "comb": "out", "steps": 3, "lift": 0.8, "layer": 0.06, "radius": 0.003})
CROP = Hair(
    "scalp", 20000, {"length": 0.30, "comb": "forward", "steps": 6, "lift": 0.35, "layer": 0.13, "radius": 0.003}
)
BACK = Hair(
    "scalp",
    17000,
    {"length": 0.75, "comb": "back", "steps": 8, "lift": 0.2, "layer": 0.13, "radius": 0.0032, "gravity": 0.06},
)
PART = Hair(
    "scalp",
    17000,
    {"length": 0.70, "comb": "aside", "steps": 8, "lift": 0.25, "layer": 0.16, "radius": 0.0032, "gravity": 0.08},
)
FRINGE = Hair(
    "scalp",
    17000,
    {"length": 0.62, "comb": "down", "steps": 8, "lift": 0.1, "layer": 0.15, "radius": 0.0032, "gravity": 0.12},
)
BOB = Hair(
    "scalp",
    15000,
    {
        "length": 1.9,
        "comb": "aside",
        "steps": 14,
        "lift": 0.1,
        "layer": 0.2,
        "radius": 0.0034,
        "gravity": 0.34,
        "uneven": 0.3,
        "wave": 0.1,
    },
)
LONG = Hair(
    "scalp",
    15000,
    {
        "length": 2.7,
        "comb": "aside",
        "steps": 18,
        "lift": 0.1,
        "layer": 0.2,
        "radius": 0.0036,
        "gravity": 0.34,
        "uneven": 0.35,
        "wave": 0.12,
    },
)
TIED = Hair("scalp", 17000, {"length": 1.3, "comb": "back", "steps": 12, "lift": 0.05, "layer": 0.08, "radius": 0.0032})
AFRO = Hair(
    "scalp",
    16000,
    {"length": 1.0, "comb": "out", "steps": 12, "lift": 0.9, "layer": 0.75, "radius": 0.0032, "curl": 1.1, "wave": 0.5},
)
CURLS = Hair(
    "scalp",
    15000,
    {
        "length": 1.1,
        "comb": "out",
        "steps": 14,
        "lift": 0.5,
        "layer": 0.3,
        "radius": 0.0034,
        "curl": 1.2,
        "gravity": 0.15,
        "wave": 0.5,
    },
)
WREATH = Hair(
    "scalp",
    11000,
    {"length": 0.4, "comb": "back", "steps": 6, "lift": 0.3, "layer": 0.1, "radius": 0.003},
    raised=0.42,
    crown=0.5,
)
RECEDING = Hair(
    "scalp", 13000, {"length": 0.5, "comb": "back", "steps": 6, "lift": 0.2, "layer": 0.1, "radius": 0.003}, raised=0.12
)
FULL_BEARD = Hair(
    "beard",
    10000,
    {
        "length": 0.45,
        "comb": "beard",
        "steps": 8,
        "lift": 0.3,
        "layer": 0.2,
        "radius": 0.0036,
        "curl": 0.35,
        "gravity": 0.15,
    },
    moustache=False,
)
GOATEE = Hair(
    "beard",
    9000,
    {"length": 0.2, "comb": "beard", "steps": 5, "lift": 0.3, "layer": 0.09, "radius": 0.0034},
    chin_only=True,
)

MOUSTACHE = Hair(
    "beard",
    14000,
    {"length": 0.2, "comb": "beard", "steps": 5, "lift": 0.3, "layer": 0.09, "radius": 0.0034},
    lip_only=True,
)

WINDOW = (Light(-70, 12, 1000, (0.88, 0.94, 1.0), size=11), Light(60, 0, 110, size=14))
SIDE = (Light(-88, 10, 1250, (1.0, 0.93, 0.85), size=4), Light(140, 30, 300))
EVENING = (Light(40, 15, 260, (1.0, 0.70, 0.42), size=3), Light(-120, 30, 120, (0.5, 0.65, 1.0)))
SUN = (Light(35, 48, 1500, (1.0, 0.94, 0.82), size=1.5), Light(-50, 10, 350, (0.75, 0.86, 1.0), size=16))
FLASH = (Light(3, 8, 900, (1, 1, 1), size=1.8), Light(180, 50, 200))
OVERCAST = (Light(0, 60, 800, (0.93, 0.96, 1.0), size=20), Light(20, -30, 160, size=16))

_PAIRS = [
    "nose/nose-width1-{decr,incr}",
    "nose/nose-width2-{decr,incr}",
    "nose/nose-width3-{decr,incr}",
    "nose/nose-hump-{decr,incr}",
    "nose/nose-scale-vert-{decr,incr}",
    "nose/nose-point-{down,up}",
    "nose/nose-flaring-{decr,incr}",
    "nose/nose-volume-{decr,incr}",
    "mouth/mouth-scale-horiz-{decr,incr}",
    "mouth/mouth-upperlip-volume-{decr,incr}",
    "mouth/mouth-lowerlip-volume-{decr,incr}",
    "mouth/mouth-trans-{down,up}",
    "chin/chin-width-{decr,incr}",
    "chin/chin-height-{decr,incr}",
    "chin/chin-prominent-{decr,incr}",
    "cheek/cheek-bones-{decr,incr}",
    "cheek/cheek-volume-{decr,incr}",
    "eyes/eye-scale-{decr,incr}",
    "eyes/eye-trans-{in,out}",
    "eyes/eye-height2-{decr,incr}",
    "forehead/forehead-temple-{decr,incr}",
    "head/head-scale-horiz-{decr,incr}",
    "head/head-fat-{decr,incr}",
    "eyebrows/eyebrows-trans-{down,up}",
    "ears/ear-scale-{decr,incr}",
    "ears/ear-wing-{decr,incr}",
]


def own(seed: int, strength: float = 0.45) -> dict[str, float]:
    """Small features of one's own: every pair of targets, either way, by chance."""
    random = np.random.default_rng(seed)
    features = {}
    for pair in _PAIRS:
        name, _, ends = pair.partition("{")
        amount = float(random.normal() * strength)
        most = 0.35 if "lip" in name else 0.9
        features[name + ends.rstrip("}").split(",")[amount > 0]] = min(abs(amount), most)
    return features
