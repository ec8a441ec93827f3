"""Accounting: what a client has spent when it reports more than once, and a budget that holds.

Reports of `Cash` compose exactly: k of them are one report of k times as many coordinates, so that
its profile on the grid speaks for all of them together. Reports of all others spend epsilon each,
which add up (*basic* composition). If a small delta is allowed, they spend less: the privacy loss
is then a sum of k independent signs times epsilon, and rarely close to its maximum. That is the
*optimal* composition of Kairouz, Oh and Viswanath (2015), and no smaller bound holds.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from ldpcash.base.arrays import Reals
from ldpcash.base.bisection import bisect, grow
from ldpcash.base.checks import positive, real_number, whole_number
from ldpcash.protocols.blank import Blank
from ldpcash.protocols.cash import Cash
from ldpcash.protocols.direct import Direct
from ldpcash.protocols.prot import Prot
from ldpcash.protocols.protocol import Protocol

_PURE = (Prot, Blank, Direct)  # epsilon each, and no delta


def response_delta(epsilon: float, each: float, reports: int) -> float:
    """The smallest delta for which k randomized responses together are (epsilon, delta) private.

    Of k signs, i are flipped with probability C(k, i) p^(k-i) q^i, p = e^each / (e^each + 1), and
    the loss is then (k - 2 i) each. The delta is the mean of (1 - e^(epsilon - loss))^+. What comes
    back is rounded up, by at most 1e-9 + 4e-14 k of it; epsilon counts to 15 digits.

    Args:
        epsilon: privacy loss of all responses together, 0 or more.
        each: privacy loss of one of them.
        reports: k.

    >>> response_delta(2.0, 1.0, 2), round(response_delta(2.0, 1.0, 5), 4)
    (0.0, 0.4412)
    """
    epsilon = real_number("epsilon", epsilon, 0)
    each = positive("each", each)
    reports = whole_number("reports", reports, 0)
    flipped = np.arange(reports + 1)
    beyond = np.maximum((reports - 2 * flipped) * each - epsilon, 0.0)
    chance = gammaln(reports + 1) - gammaln(flipped + 1) - gammaln(reports - flipped + 1)
    chance -= flipped * each + reports * math.log1p(math.exp(-each))
    # Logarithms of up to k log k are off by a few parts in 10^16, and that is the relative error of
    # what exp makes of them: 8 k log k 2^-53 at most, which is below 2e-14 k for all k up to 10^9.
    safe = 1 + 1e-9 + 2e-14 * reports
    return float(min(1.0, (np.exp(chance) * -np.expm1(-beyond)).sum() * safe))


def spent_delta(protocol: Protocol, reports: int, epsilon: float) -> float:
    """The delta of k reports of one client at this epsilon, by exact composition.

    (For pure protocols but `Prot` it is what holds for every one with the same epsilon.)

    >>> from ldpcash import PolarCode
    >>> cash = Cash(PolarCode.construct(64, 8), 1.0)
    >>> spent_delta(cash, 1, 1.0) <= 1e-4 < spent_delta(cash, 2, 1.0)
    True
    """
    if not isinstance(protocol, (Cash, *_PURE)):
        known = ", ".join(kind.__name__ for kind in _PURE)
        raise ValueError(f"protocol = a {type(protocol).__name__}: needs Cash, or one of {known}")
    reports = whole_number("reports", reports, 0)
    if reports == 0:
        return 0.0
    if isinstance(protocol, _PURE):
        return response_delta(epsilon, protocol.epsilon, reports)
    return protocol.grid.delta(epsilon, reports)


def spent_epsilon(protocol: Protocol, reports: int, delta: float) -> float:
    """The smallest epsilon for which k reports of one client are (epsilon, delta) private.

    It is rounded up, to a part in 10^9. With delta = 0 it is infinite for `Cash`, and basic
    composition for all others.

    Args:
        protocol: what it reports with.
        reports: k, how often.
        delta: of all reports together.

    >>> from ldpcash import PolarCode
    >>> prot = Prot(PolarCode.construct(64, 8), 0.1)
    >>> [round(spent_epsilon(prot, 100, delta), 3) for delta in (0.0, 1e-4)]
    [10.0, 3.755]
    """
    if not 0 <= real_number("delta", delta) < 1:
        raise ValueError(f"delta = {delta!r}: needs a number from 0, below 1")
    if spent_delta(protocol, reports, 0.0) <= delta:
        return 0.0
    if isinstance(protocol, Cash) and delta == 0:
        return math.inf

    def enough(epsilon: float) -> bool:
        return spent_delta(protocol, reports, epsilon) <= delta

    return bisect(enough, *grow(enough, protocol.epsilon), close=1e-9)


class BudgetError(Exception):
    """A report that would cost more than is left.

    >>> from ldpcash import PolarCode
    >>> try:
    ...     Budget(Prot(PolarCode.construct(64, 8), 2.0), epsilon=1.0, delta=0.0).report(None)
    ... except BudgetError as error:
    ...     print(error)
    report 1 would spend more than (1.0, 0.0); 0 were made
    """


class Budget:
    """A client's budget: it lets reports out as long as all of them together keep a promise.

    Args:
        protocol: what the client reports with.
        epsilon, delta: the promise for all its reports together.

    >>> from ldpcash import PolarCode
    >>> budget = Budget(Prot(PolarCode.construct(64, 8), 0.5), epsilon=1.2, delta=0.0)
    >>> for _ in range(2):
    ...     report = budget.report([1, 0, 1, 1, 0, 0, 1, 0])
    >>> budget.left
    0
    >>> budget.report([1, 0, 1, 1, 0, 0, 1, 0])
    Traceback (most recent call last):
    ldpcash.beyond.accounting.BudgetError: report 3 would spend more than (1.2, 0.0); 2 were made
    """

    def __init__(self, protocol: Protocol, epsilon: float, delta: float) -> None:
        if not (real_number("epsilon", epsilon) > 0 and 0 <= real_number("delta", delta) < 1):
            raise ValueError(f"epsilon, delta = {epsilon!r}, {delta!r}: needs (0, inf) and [0, 1)")
        spent_delta(protocol, 0, epsilon)  # which says what is wrong with another protocol
        self.protocol = protocol
        self.epsilon = epsilon
        self.delta = delta
        self.reports = 0

    def allows(self, reports: int) -> bool:
        """Whether so many reports in all keep the promise.

        >>> from ldpcash import PolarCode
        >>> budget = Budget(Prot(PolarCode.construct(64, 8), 0.5), epsilon=1.2, delta=0.0)
        >>> [budget.allows(reports) for reports in (1, 2, 3)]
        [True, True, False]
        """
        return spent_delta(self.protocol, reports, self.epsilon) <= self.delta

    @property
    def left(self) -> int:
        """How many reports are still allowed."""

        def too_many(more: int) -> bool:
            return not self.allows(self.reports + more)

        return bisect(too_many, *grow(too_many, 1)) - 1

    def report(self, item: object, rng: np.random.Generator | None = None) -> Reals:
        """One report, ``(n,)``, of an item, ``(k,)`` bits, or of None; `BudgetError` if refused."""
        if not self.allows(self.reports + 1):
            raise BudgetError(
                f"report {self.reports + 1} would spend more than"
                f" ({self.epsilon!r}, {self.delta!r}); {self.reports} were made"
            )
        bits = np.zeros(self.protocol.code.k, dtype=np.uint8) if item is None else item
        sent = self.protocol.reports(np.array([bits]), [item is not None], rng)
        self.reports += 1  # before anyone sees it
        return sent[0]
