"""Gaussian noise on a grid: where reports lie, and what noise there promises.

Floating-point noise gives a client away: which floats a sum can round to depends on the signal. So
a client of `Cash` computes with whole numbers of steps, and only a finished report becomes floats::

    signal, +-level steps or 0  +  discrete Gaussian noise, in steps  ->  report = steps * step

The *discrete Gaussian* of scale s has the probabilities P(k) = exp(-k**2 / (2 s**2)) / Z on all
whole numbers k (Canonne, Kamath and Steinke 2020). `grid_delta` bounds its privacy profile from
above, to a part in 10^8, and `safe_grid` chooses grid and scale. `ldpcash.privacy.discrete` draws
it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy

from ldpcash.base.checks import fraction, real_number, whole_number
from ldpcash.privacy.discrete import MOST_SCALE

_LEAST_SCALE = 64  # steps: grids get finer until the noise is this wide
_SAFE = 1 + 1e-9  # more than all rounding in `grid_delta`


def grid_delta(epsilon: float, scale: float, shift: int, count: int) -> float:
    """The delta of two inputs that differ by ``shift`` steps in each of ``count`` coordinates.

    Let W be the sum of the noise over these coordinates, counted in the direction from the second
    input to the first. The privacy loss of a report of the first is (2 shift W + count shift^2) /
    (2 scale^2): normalizations cancel, since moving by whole steps does not change them. If the
    loss is epsilon at W = t, then::

        delta = E[(1 - e^(epsilon - loss))^+]
              = sum over k > t of P(W = k) (1 - exp(-(k - t) shift / scale^2)).

    P(W = k) is that of a discrete Gaussian of variance S^2 = count * scale^2, up to a factor below
    1 + 1e-60. For completing the square, one more coordinate beside v of them contributes
    exp(-k^2 / (2 (v + 1) scale^2)) times the sum over all whole z of exp(-(z - c)^2 / (2 q^2)),
    with some c and q^2 = scale^2 v / (v + 1) >= scale^2 / 2. By Poisson's formula this sum is
    sqrt(2 pi) q times a number within 3 exp(-pi^2 scale^2) of 1, whatever c is, and scale >= 4. By
    the same formula the normalization is at least sqrt(2 pi) S. As all terms are positive, rounding
    stays relative: the result is an upper bound, too large by a part in 10^8 at most.

    Args:
        epsilon: privacy loss, 0 or more.
        scale: of the noise, in steps; at least 4.
        shift, count: how the inputs differ; whole numbers from 1.

    >>> grid_delta(1.0, 51.0, 2, 64) < 1e-4  # noise of 6.375, in steps of 1/8; sensitivity 2
    True
    """
    epsilon, scale = real_number("epsilon", epsilon, 0), real_number("scale", scale, 4)
    shift, count = whole_number("shift", shift, 1), whole_number("count", count, 1)
    variance = count * scale**2
    spread = math.sqrt(variance)
    t = epsilon * scale**2 / shift - count * shift / 2
    last = math.floor(max(t, 0) + 12 * spread) + 1
    k = np.arange(max(math.floor(t), -last), last, dtype=np.float64)
    excess = -np.expm1(-np.maximum(k - t, 0) * (shift / scale**2))
    terms = np.exp(-(k**2) / (2 * variance)) * excess
    beyond = spread * math.exp(-(last**2) / (2 * variance))  # more than all terms that follow
    return float((terms.sum() + beyond) * _SAFE / math.sqrt(2 * math.pi * variance))


@dataclass(frozen=True)
class Grid:
    """Where reports of `Cash` lie, and the noise on it.

    >>> grid = safe_grid(1.0, 1e-4, 6.3714, 64, 64)
    >>> grid.level, grid.step == 1 / (8 * grid.level), grid.delta(1.0) <= 1e-4
    (2, True, True)
    """

    level: int  #: the entries of a signal are +-level steps
    scale: float  #: of the noise, in steps
    step: float  #: 1 / (level sqrt(n))
    weight: int  #: of the heaviest codeword
    apart: int  #: coordinates in which two inputs can differ by one level

    def delta(self, epsilon: float, reports: int = 1) -> float:
        """The delta of a client that reports once, or several times, whatever it holds and when.

        The inputs of a report can be two words, which differ by 2 levels in at most ``weight``
        coordinates, or a word and nothing, which differ by one level in all n. To differ in fewer
        coordinates is to differ in more and to drop some, which does not raise delta. So the worst
        that is all of the first kind is `far`. Otherwise <noise, difference> is a whole number of
        levels, 2 W + W' of both kinds together. As in `grid_delta` it has the law of a sum of noise
        over as many coordinates as the squared distance has levels: at most 4 weight or n a report.
        """
        far = grid_delta(epsilon, self.scale, 2 * self.level, self.weight * reports)
        squares = max(4 * self.weight, self.apart) * reports
        return max(far, grid_delta(epsilon, self.scale, self.level, squares))

    def largest_norm(self, n: int, rejection: float = 1e-6) -> float:
        """The norm that an honest report exceeds with probability ``rejection``.

        The square of the norm of a unit signal in noise of scale sigma is sigma^2 times a
        noncentral chi-square variable with n degrees of freedom and noncentrality 1 / sigma^2. A
        client without an item has noise alone, and exceeds it less often.

        Args:
            n: numbers that a report has.
            rejection: the probability that an honest report is refused.

        >>> round(safe_grid(1.0, 1e-4, 6.3714, 64, 64).largest_norm(64), 1)
        73.4
        """
        rejection = fraction("rejection", rejection)
        sigma = self.scale * self.step
        return sigma * math.sqrt(scipy.stats.ncx2.isf(rejection, n, 1 / sigma**2))


def safe_grid(
    epsilon: float, delta: float, sigma: float, n: int, weight: int, apart: int | None = None
) -> Grid:
    """A grid whose noise keeps the promise of (epsilon, delta), by `grid_delta`.

    Signals lie on it, and noise is at least 64 steps wide. Its scale is sigma, and where the
    discrete law needs it about one part in 10^5 more.

    Args:
        epsilon, delta: the promise.
        sigma: of the Gaussian mechanism with the same promise.
        n: length of the code, a power of two.
        weight: of its heaviest codeword.
        apart: in how many coordinates two inputs can differ by one level: n unless given, for a
            word and nothing.

    >>> grid = safe_grid(1.0, 1e-4, 6.3714, 64, 64)
    >>> grid.level, grid.step, round(grid.scale * grid.step, 3), grid.delta(1.0) <= 1e-4
    (2, 0.0625, 6.371, True)
    """
    width = sigma * math.sqrt(n)  # of the noise, in steps of 1 / sqrt(n)
    level = 2 ** max(0, math.ceil(math.log2(_LEAST_SCALE / width)))
    if not width <= MOST_SCALE:
        raise ValueError(
            f"sigma = {sigma!r}: more than {MOST_SCALE / math.sqrt(n):g}, where noise is no longer"
            " drawn exactly; a larger epsilon needs less"
        )
    step = 1 / (level * math.sqrt(n))
    grid = Grid(level, width * level, step, weight, n if apart is None else apart)
    while grid.delta(epsilon) > delta:
        grid = replace(grid, scale=grid.scale * (1 + 2.0**-18))
    return grid
