"""What lips that move tell of the light between them, and of how much of the portrait still holds there."""

from __future__ import annotations

import numpy as np

from .anatomy import LIP_MIDDLE, LOWER_INNER, MOUTH_CORNERS, UPPER_INNER
from .writer import Graph, Value

PUCKERED = np.array([0.58, 0.48, 0.45], np.float32).reshape(1, 3, 1, 1)
"""Light between the most puckered lips, to that between spread ones, RGB."""

LIKE_PHOTO = (0.004, 0.018)
"""Change of the gaps between the lips and of their width, in widths of the mouth, over which what is drawn between them
takes the place of what the portrait shows there."""

FADED_AT = 0.10
"""Change of the gap between the lips, in widths of the mouth, at which the line between them is gone."""

DRAWN_IN = 0.25
"""Part of the mouth's width by which its corners come in when the folds beside it are flat."""

LINE_TINT = np.array([1.06, 0.99, 0.95], np.float32).reshape(1, 3, 1, 1)
"""Colour, RGB, by which what is dark in the portrait is brightened: lips and skin lack blue."""

FOLD_TINT = np.array([0.84, 1.06, 1.10], np.float32).reshape(1, 3, 1, 1)
"""The same of folds, where light has been on skin twice: they lack blue and green."""

MIDDLE = (UPPER_INNER[LIP_MIDDLE], LOWER_INNER[LIP_MIDDLE])


def like_photo(g: Graph, source: Value, driving: Value) -> Value:
    """[] 1 while the lips stand as in the portrait, 0 once gaps or corners differ by LIKE_PHOTO[1].

    What the portrait shows low between its lips, dark gaps above all, means nothing in another mouth.
    """
    upper, lower = [MOUTH_CORNERS[0], *UPPER_INNER], [MOUTH_CORNERS[1], *LOWER_INNER]
    apart, before = (points.take(lower) - points.take(upper) for points in (driving, source))
    apart, before = ((span * span).sum(1).sqrt() for span in (apart, before))
    change = apart - before
    begin, end = LIKE_PHOTO
    return 1 - g.smoothstep(((change * change).mean(0).sqrt() / (before[0] + 1e-3) - begin) / (end - begin))


def line_fades(g: Graph, source: Value, driving: Value) -> Value:
    """[1, 3, 1, 1] share of the line's darkness that goes: none while the lips are as far apart as in the portrait, all
    from FADED_AT on."""
    before, gap, width = (
        (((points[b] - points[a]) * (points[b] - points[a])).sum(0) + 1e-9).sqrt()
        for points, (a, b) in ((source, MIDDLE), (driving, MIDDLE), (source, MOUTH_CORNERS))
    )
    return g.smoothstep((gap - before).abs() / (width * FADED_AT)) * LINE_TINT


def folds_flatten(g: Graph, source: Value, driving: Value) -> Value:
    """[1, 3, 1, 1] share of the dark in the folds beside the mouth that goes: none while its corners are as far apart
    as in the portrait, all where they come in by DRAWN_IN."""
    return g.smoothstep((1 - _width_share(source, driving)) / DRAWN_IN) * FOLD_TINT


def between_lips(g: Graph, source: Value, driving: Value) -> Value:
    """[1, 3, 1, 1] light that is left behind lips drawn together: they reach forwards and stand in its way."""
    return g.smoothstep((_width_share(source, driving) - 0.5) / 0.4) * (1 - PUCKERED) + PUCKERED


def _width_share(source: Value, driving: Value) -> Value:
    """[] the distance of the corners of the mouth, to that in the portrait."""
    left, right = MOUTH_CORNERS
    across, before = (points[right] - points[left] for points in (driving, source))
    return ((across * across).sum(0) / ((before * before).sum(0) + 1e-6)).sqrt()
