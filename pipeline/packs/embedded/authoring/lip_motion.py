"""What lips that move tell of the light between them, and of how much of the portrait still holds there."""

from __future__ import annotations

import numpy as np

from .anatomy import EYES, LIP_MIDDLE, LOWER_INNER, MOUTH_CORNERS, UPPER_INNER
from .mouth_interior import EYES_TO_MOUTH
from .writer import Graph, Value

KEPT_OUT = np.array([0.6, 0.8, 0.85], np.float32).reshape(1, 3, 1, 1)
"""By what power of e puckered lips keep the light out, RGB."""

COVERED = 0.13
"""How much of the upper teeth puckered lips, which reach over them, cover, in distances of the outer corners of the
eyes: dark ones behind lips that open and widen look like glass."""

COVERS = (0.3, 0.6)
"""How far puckered lips are that begin to cover the teeth, and that cover them: a funnel's show them."""

ROUND, AT_REST = 0.68, 0.95
"""Widths of puckered lips and of lips at rest, to the mean of the portrait's mouth and an average one."""

NARROW, TALL = 0.20, 0.45
"""Gaps between lips, to the same, up to which round lips keep the light out, and from which on none."""

LIKE_PHOTO = (0.004, 0.018)
"""Change of the gaps between the lips and of their width, in widths of the mouth, over which what is drawn between them
takes the place of what the portrait shows there."""

FADED_AT = 0.10
"""Change of the gap between the lips, in widths of the mouth, at which the line between them is gone."""

DRAWN_IN = 0.25
"""Part of the mouth's width by which its corners come in when the folds beside it are flat."""

LINE_TINT = np.array([1.06, 0.99, 0.95], np.float32).reshape(1, 3, 1, 1)
"""Colour, RGB, by which what is dark in the portrait is brightened: lips and skin lack blue."""

MIDDLE = [UPPER_INNER[LIP_MIDDLE], LOWER_INNER[LIP_MIDDLE]]
OUTER_EYES = [EYES[0].corners[0], EYES[1].corners[1]]


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
    """[1, 3, 1, 1] share of the line's darkness that goes: none while the lips are as far apart as in the portrait and
    the corners no nearer, or the lips closed; all from FADED_AT on, or where the corners of open lips come in."""
    before, gap = (
        _distance(points, MIDDLE) / (_distance(source, MOUTH_CORNERS) * FADED_AT) for points in (source, driving)
    )
    drawn_in = (1 - _width_share(source, driving)) / DRAWN_IN
    return g.smoothstep(g.maximum((gap - before).abs(), g.minimum(drawn_in, gap))) * LINE_TINT


def folds_flatten(g: Graph, source: Value, driving: Value) -> Value:
    """[] share of the folds beside the mouth that goes: none while its corners are as far apart as in the portrait, all
    where they come in by DRAWN_IN."""
    return g.smoothstep((1 - _width_share(source, driving)) / DRAWN_IN)


def light_behind(puckered: Value) -> Value:
    """[1, 3, 1, 1] light that is left behind puckered lips: they reach forwards and stand in its way."""
    return (puckered * -KEPT_OUT).exp()


def teeth_covered(puckered: Value, driving: Value) -> Value:
    """[] by how much the upper lip comes down over the teeth, crop units."""
    begin, end = COVERS
    down = driving.graph.smoothstep((puckered - begin) / (end - begin))
    return down * _distance(driving, OUTER_EYES) * COVERED


def pucker(g: Graph, source: Value, driving: Value) -> Value:
    """[] 0..1, how far lips are drawn together, beyond what they are in the portrait."""
    own = _distance(source, MOUTH_CORNERS) / _distance(source, OUTER_EYES)
    usual = (own * EYES_TO_MOUTH).sqrt()

    def drawn_together(points: Value) -> Value:
        across, gap = (
            _distance(points, pair) / _distance(points, OUTER_EYES) / usual for pair in (MOUTH_CORNERS, MIDDLE)
        )
        round_, open_ = (across - ROUND) / (AT_REST - ROUND), (gap - NARROW) / (TALL - NARROW)
        return (1 - g.smoothstep(round_)) * (1 - g.smoothstep(open_))

    return (drawn_together(driving) - drawn_together(source)).clip(0, None)


def _width_share(source: Value, driving: Value) -> Value:
    """[] the distance of the corners of the mouth, to that in the portrait."""
    return _distance(driving, MOUTH_CORNERS) / _distance(source, MOUTH_CORNERS)


def _distance(points: Value, pair: list[int]) -> Value:
    """[] of two points."""
    across = points[pair[1]] - points[pair[0]]
    return ((across * across).sum(0) + 1e-9).sqrt()
