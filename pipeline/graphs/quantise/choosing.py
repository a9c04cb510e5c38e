"""Which parts to quantise: as much work as an error allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence


def choose(
    alone: Sequence[Sequence[float]] | Mapping[int, Sequence[float]],
    gains: Sequence[float],
    budget: float,
    measure: Callable[[Sequence[int]], Sequence[float]],
) -> list[int]:
    """Indices of the parts that may be quantised together, in order.

    Squared errors of independent roundings add up. So parts are dropped, the one with the most error for its gain
    first, until the sum fits; then the sum is checked by measurement, and more are dropped while it does not.

    Args:
        alone: squared errors of each part when it alone is quantised, one a judged result; those with a gain suffice.
        gains: what quantising each part saves; parts without a gain are never chosen.
        budget: the most squared error of any result.
        measure: squared errors with these parts quantised.
    """
    chosen = [index for index, gain in enumerate(gains) if gain > 0]
    while chosen:
        totals = [sum(errors) for errors in zip(*(alone[index] for index in chosen), strict=True)]
        worst = max(range(len(totals)), key=totals.__getitem__)
        if totals[worst] <= budget:
            found = measure(chosen)
            if max(found) <= budget:
                break
            worst = max(range(len(found)), key=found.__getitem__)
        chosen.remove(max(chosen, key=lambda index: alone[index][worst] / gains[index]))
    return chosen
