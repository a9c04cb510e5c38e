"""Lips and brows of the denoiser: what the sound says, as expression coefficients."""

from __future__ import annotations

from .expression import both, coefficients, smoothed
from .features import FEATURES
from .writer import Graph, Value

VISEMES: dict[str, dict[str, float]] = {
    # "ah": low jaw, lips drawn from the teeth
    "open": {"jawOpen": 0.44, **both("mouthLowerDown", 0.3), **both("mouthUpperUp", 0.22)},
    # "oh": half open and rounded
    "open_round": {"jawOpen": 0.3, "mouthFunnel": 0.5, "mouthPucker": 0.5, **both("mouthSmile", -0.3)},
    # "ee": narrow and wide
    "spread": {"jawOpen": 0.09, **both("mouthStretch", 0.28), **both("mouthLowerDown", 0.5),
               **both("mouthUpperUp", 0.3), **both("mouthSmile", 0.08)},
    # "oo": small and pushed forward
    "round": {"jawOpen": 0.07, "mouthPucker": 0.85, "mouthFunnel": 0.35, **both("mouthSmile", -0.4)},
    # "uh", r, l: a little of everything
    "neutral": {"jawOpen": 0.14, **both("mouthLowerDown", 0.25), **both("mouthUpperUp", 0.12)},
    # s, sh: teeth together, lips apart
    "hiss": {"jawOpen": 0.05, **both("mouthStretch", 0.15), **both("mouthLowerDown", 0.4),
             **both("mouthUpperUp", 0.25)},
    # f, th, h: lower lip near the upper teeth
    "breath": {"jawOpen": 0.03, "mouthRollLower": 0.4, **both("mouthUpperUp", 0.3)},
    # p, b, m: lips together
    "shut": {**both("mouthPress", 0.22), "mouthRollLower": 0.15},
}  # fmt: skip

BROW_IDLE, BROW_EMPHASIS = 0.05, 0.14
"""Coefficient of browInnerUp for one unit of the drive, and on the loudest syllables."""


def lips(g: Graph, features: Value) -> Value:
    """[2, 110, 8] features -> [2, 110, 52] coefficients."""
    level, voicing, opening, front, rounding, hiss, breath, closure = (
        features[:, :, i : i + 1] for i in range(len(FEATURES))
    )
    sounding = ((level - 0.12) * (1 / 0.3)).clip(0, 1)
    shut = g.maximum(closure, smoothed(g, closure, (0.3, 0.4, 0.3)))
    vowel = sounding * (1 - hiss) * (0.3 + 0.7 * voicing) * (0.7 + 0.3 * level)
    close, plain = 1 - opening, 1 - rounding
    shares = {
        "open": vowel * opening * plain,
        "open_round": vowel * opening * rounding,
        "spread": vowel * close * front,
        "round": vowel * close * rounding,
        "neutral": vowel * close * plain * (1 - front),
        "hiss": sounding * hiss,
        "breath": sounding * breath * 0.5,
    }
    said = g.concat([shares[name] for name in VISEMES if name in shares], axis=2)
    said = smoothed(g, said, (0.05, 0.25, 0.4, 0.25, 0.05)) * (1 - shut)
    return g.concat([said, shut * shut], axis=2) @ coefficients(VISEMES.values())


def brows(g: Graph, features: Value, drive: Value) -> Value:
    """Brows that wander a little and rise on loud syllables: [2, 110, 52]."""
    loud = features[:, :, 0:1] * features[:, :, 1:2]
    emphasis = ((smoothed(g, loud, (1 / 9,) * 9) - 0.55) * (1 / 0.4)).clip(0, 1)
    raised = (drive * BROW_IDLE + emphasis * BROW_EMPHASIS).clip(0, None)
    return raised @ coefficients([{"browInnerUp": 1.0, **both("browOuterUp", 0.6)}])
