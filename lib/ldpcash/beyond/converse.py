"""The converse: what no randomizer with pure epsilon privacy can beat, whatever the server does.

::

    epsilon, f -> the most that a report can tell -> clients needed for k bits (Fano)
                                                  -> or the smallest frequency with N of them

`notebooks/15_best_randomizer.ipynb` has the proofs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import xlog1py, xlogy

from ldpcash.base.checks import positive, real_number, whole_number
from ldpcash.privacy.answers import epsilon_within, share


def most_told(epsilon: float, frequency: float = 0.0) -> float:
    """The most nats that a client's report can tell about an item, which it holds with probability
    f, and else nothing: over f^2 / 2.

    For any item u, r = P(report | u) / mean over items, and s = P(report | nothing) / the same.
    All of them lie within a factor of E = e^epsilon, r has the mean 1 over items and s over
    reports. What is told is convex in r, so r takes two values, a and a E. Then it is largest where
    s = a, an answer, or s = a E, a denial (`ldpcash.privacy.answers`), and what is left is to mix
    the two so that the mean of s is 1: a concave envelope. For f = 0 that is

    - sinh(epsilon)^2 / 4 up to E = 3, by answers of which a share of (E + 1) / (4 E) is an item's
      own, and denials with a share of (3 - E) / 4;
    - (E - 1)^2 / g^2 from there on, by answers of one in g = 1 + sqrt(E + 1), and one blank.

    Args:
        epsilon: the privacy of each report, at most 40.
        frequency: f; 0 for a small one.

    >>> [round(most_told(epsilon), 4) for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0)]
    [0.016, 0.0679, 0.3453, 2.6887, 40.1723]
    >>> round(most_told(2.0, 1e-9), 4), round(most_told(2.0, 0.3), 4)
    (2.6887, 1.5801)
    """
    epsilon = epsilon_within(epsilon)
    frequency = real_number("frequency", frequency, 0, 1)
    E = math.exp(epsilon)
    if frequency == 0:
        if E <= 3:
            return math.sinh(epsilon) ** 2 / 4
        return (math.expm1(epsilon) / (1 + math.sqrt(E + 1))) ** 2

    def most(price: float) -> float:
        """The most of what is told less price * (s - 1), over both kinds and all shares."""
        return max(_peak(epsilon, frequency, price, answers) for answers in (True, False))

    # Of all lines over both curves, the lowest at s = 1. None that matters is below 0 at s = E or
    # at s = 1 / E, which bounds its slope; for a large E by far more on one side.
    highest = most(0.0)

    def height(slope: float) -> float:
        return most(highest * (slope / math.expm1(epsilon) if slope < 0 else slope * E / (E - 1)))

    found = minimize_scalar(height, bounds=(-1, 1), method="bounded", options={"xatol": 1e-12})
    return float(found.fun)


def _peak(epsilon: float, frequency: float, price: float, answers: bool) -> float:
    """The largest value of told + price * (1 - s) over all shares p of own values."""

    def value(own: Any) -> Any:
        kind = share(epsilon, own, answers)
        return kind.told(epsilon, frequency) + price * (1 - kind.ratio)

    grid = np.concatenate([[0.0], np.geomspace(math.exp(-epsilon) / 100, 1, 400)])
    values = value(grid)
    best = int(values.argmax())
    around = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    close = 1e-7 * around[1]  # where the value is highest it hardly changes
    inside = minimize_scalar(
        lambda own: -float(value(own)), bounds=around, method="bounded", options={"xatol": close}
    )
    return max(float(values[best]), -float(inside.fun))


def most_told_of_all(epsilon: float) -> float:
    """The same where every client holds an item, for f close to 0: (E - 1)^2 / (4 E).

    Then s = 1 in the formulas of `most_told`: what the others send is the mean over all items.
    Optimal local hashing and subset selection reach it, if their g or w could be any number.

    >>> round(most_told_of_all(2.0), 4)
    1.3811
    """
    return math.sinh(positive("epsilon", epsilon) / 2) ** 2


def clients_needed(k: int, error: float, told: float) -> float:
    """How many clients any server needs to find k bits with at most this block error rate (Fano).

    Clients hold the item independently of each other. Then N reports tell at most N times what one
    tells, also if later clients know what earlier ones sent; and whoever finds k random bits, but
    for an error rate, has been told (1 - error) k log 2 - h(error), with h the entropy of a coin.
    (If it is known that exactly f N clients hold it, N reports can tell more, though no more than
    half the logarithm of 2 pi e N f (1 - f) on average over the number of holders.)

    Args:
        k: bits of an item, all alike.
        error: the block error rate.
        told: nats that a report tells, at most: `most_told` times f^2 / 2.

    >>> round(clients_needed(128, 0.05, most_told(2.0, 0.01) * 0.01**2 / 2))
    642098
    """
    k, error = whole_number("k", k, 1), real_number("error", error, 0, 1)
    entropy = -float(xlogy(error, error) + xlog1py(1 - error, -error))
    return max(0.0, (1 - error) * k * math.log(2) - entropy) / positive("told", told)


def least_frequency(k: int, error: float, epsilon: float, clients: int) -> float:
    """The smallest true frequency at which any server can find the item, by `clients_needed`.

    It is infinite if there is none. As there, clients hold the item independently of each other.

    Args:
        k: bits of an item.
        error: the block error rate.
        epsilon: the privacy of each client's report.
        clients: N.

    >>> round(least_frequency(8, 1e-3, 2.0, 1000), 4), least_frequency(8, 1e-3, 0.1, 1000)
    (0.0696, inf)
    """
    needed = clients_needed(k, error, 1.0) / whole_number("clients", clients, 1)

    def missing(frequency: float) -> float:
        return needed - frequency**2 / 2 * most_told(epsilon, frequency)

    if missing(1.0) > 0:
        return math.inf
    least = math.sqrt(2 * needed / most_told(epsilon))  # a larger f tells less of each f^2 / 2
    return float(brentq(missing, least / 2, 1.0, xtol=1e-4 * least))


def least_error(k: int, epsilon: float, frequency: float, clients: int) -> float:
    """The smallest block error rate that any server can have, by `clients_needed`.

    Args:
        k: bits of an item.
        epsilon: the privacy of each client's report.
        frequency: f, the probability with which each client holds the item.
        clients: N.

    >>> round(least_error(8, 0.3, 0.5, 1000), 3), least_error(8, 0.5, 0.5, 1000)
    (0.37, 0.0)
    """
    frequency = real_number("frequency", frequency, 0, 1)
    told = frequency**2 / 2 * most_told(epsilon, frequency) if frequency else 0.0
    told *= whole_number("clients", clients, 1)
    guess = 1 - 0.5 ** whole_number("k", k, 1)  # the error rate without any report

    def missing(error: float) -> float:
        return clients_needed(k, error, 1.0) - told

    return float(brentq(missing, 0.0, guess, xtol=1e-12)) if missing(0.0) > 0 else 0.0
