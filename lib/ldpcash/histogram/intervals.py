"""Intervals for items that were found, which is to say: for estimates that were large enough.

An item is in the table because its estimate was high. Of all such estimates more are too high than
too low, so the usual interval, estimate +- 1.96 standard errors, holds the truth too seldom near
the threshold. Here an interval is made from the law of the estimate, *given that the item was
found*::

    P(estimate = u | found) ~ normal density of u around f  *  P(found | estimate = u)

Its ends are the frequencies f at which what was seen, or more, has 2.5 % and 97.5 % of that law. So
each item's interval covers its frequency with 95 %, given that the item was found, whatever f is,
as far as the law is known: that items too light to be found are like noise (see `search`).

P(found | u) is 0 below the threshold. Above it an item is found if the decoder lists it, which is
a matter of how strongly it was received.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

from ldpcash.base.arrays import Reals

_REACH = 9.0  # standard errors on each side that the law is summed over, as far as the bar
_STEPS = 200  # of the sum, on each side
_HALVINGS = 40


def conditional_interval(
    estimate: Reals,
    deviation: Callable[[Reals], Reals],
    bar: Reals,
    chance: Callable[[Reals], Reals],
) -> tuple[Reals, Reals]:
    """95 % intervals, given that items were found: two ends, ``(R,)`` each.

    Args:
        estimate: ``(R,)``, of each item's frequency.
        deviation: frequencies ``(R,)`` to the standard deviations of their estimates.
        bar: ``(R,)``, the least estimate that is accepted.
        chance: estimates ``(R, U)`` to the probability that such an item is listed at all.

    >>> def always(u):
    ...     return np.ones_like(u)
    >>> low, high = conditional_interval(
    ...     np.array([0.10, 0.25]), lambda f: 0.01 + 0 * f, np.array([0.08, 0.08]), always
    ... )
    >>> low.round(4), high.round(4)  # what just cleared the bar may be much less
    (array([0.0763, 0.2304]), array([0.1196, 0.2696]))
    """
    width = deviation(estimate)
    start = np.maximum(bar, estimate - _REACH * width)
    below = _midpoints(start, estimate)
    u = np.concatenate([below, _midpoints(estimate, estimate + _REACH * width)], axis=1)
    weight = chance(u)
    weight[:, :_STEPS] *= ((estimate - start) / (_REACH * width))[:, None]  # of shorter steps

    def share_above(frequency: Reals) -> Reals:
        exponent = -(((u - frequency[:, None]) / deviation(frequency)[:, None]) ** 2) / 2
        exponent -= exponent.max(axis=1, keepdims=True)
        law = np.exp(exponent) * weight
        return np.asarray(law[:, _STEPS:].sum(axis=1) / law.sum(axis=1))

    def frequency_at(share: float) -> Reals:
        low, high = np.zeros_like(estimate), estimate + _REACH * width
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            over = share_above(middle) > share
            low, high = np.where(over, low, middle), np.where(over, middle, high)
        return high

    return frequency_at(0.025), frequency_at(0.975)


def _midpoints(start: Reals, end: Reals) -> Reals:
    """Of equal steps between two ends, ``(R,)`` each: ``(R, steps)``."""
    share = (np.arange(_STEPS) + 0.5) / _STEPS
    return start[:, None] + (end - start)[:, None] * share


def listing_chance(strength: Reals, k: int, list_size: int) -> Reals:
    """Probability that a `SymbolDecoder` lists an item that seems so many standard errors strong.

    The limit of all codes is sqrt(2 k log 2). The decoder's own is close to it, a little higher
    with a short list, and a little blurred; a test holds this curve against the decoder.

    Args:
        strength: an item's estimate over its standard error.
        k: bits of an item.
        list_size: of the decoder.

    >>> listing_chance(np.array([6.0, 7.0, 8.0, 9.0]), 40, 32).round(2)
    array([0.  , 0.13, 0.92, 1.  ])
    """
    limit = math.sqrt(2 * math.log(2) * k)
    own = limit * (1 + 0.0175 * (5 - math.log2(list_size)))
    return np.asarray(ndtr((strength - own) / 0.4))
