"""The randomizer for clients of whom most hold nothing: an answer, a denial, or a blank.

A client that holds an item has one of g values to tell; some of the g, a fraction p of them, count
as its *own*, such as the value itself. A client that holds nothing has none. What is sent is one
of g *answers* or one of g *denials*::

                          an item's own      its others       nothing held
    each answer               a1               a1 / E             a1 / E
    each denial               a2               a2 / E             a2             E = e^epsilon

So whoever holds nothing seldom answers, and an answer is worth much to the server; a denial is
worth 1 / E of it. In each line no two numbers differ by more than a factor of E: that is pure
epsilon privacy. Both columns' sums are 1, which sets a1 and a2. If no value is an own one among
the denials, all of them are alike, and are one *blank*.

This is a family of extreme points: `ldpcash.paper.theory` shows that no randomizer tells more than
the best mixture of answers and denials, and `Answers.best` chooses what comes closest to it.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py

from ldpcash.base.bisection import bisect
from ldpcash.base.checks import real_number, whole_number

WORDS = 2**64  # coins compare a random word with whole numbers
LEAST_EPSILON = 2.0**-40  # below it a coin of 64 bits is too coarse
MOST_EPSILON = 40.0  # beyond it the rarest answer is rarer than one word
MOST_WIDTH = 12

# Sixteen values of which six are own: where x0 x1 + x2 x3 = 1. That is a bent function, whose sums
# over all linear functions are alike: each bit of a value is heard equally well.
_BENT = (3, 7, 11, 12, 13, 14)


class Share(NamedTuple):
    """Answers or denials, seen by a server to which all values are equally likely.

    Its numbers may be arrays, for many shares at once.

    >>> share(2.0, 0.25, answers=True)
    Share(base=0.3850205410298749, ratio=0.3850205410298749)
    """

    base: Any  #: P(sent by an item, not as its own) / P(sent by some item)
    ratio: Any  #: P(sent by a client that holds nothing) / P(sent by some item)

    def told(self, epsilon: float, frequency: float) -> Any:
        """Nats that it tells about the item, if a fraction f of clients holds it, over f^2 / 2.

        P(sent) is in proportion to f r + (1 - f) s, r = base or base * E, s = ratio; r has a mean
        of 1 over all items. For f = 0 it is the limit, the variance of r over s.

        >>> round(float(share(2.0, 0.25, answers=True).told(2.0, 0.0)), 3)
        2.947
        """
        up, down = self.base * math.exp(epsilon) - 1, self.base - 1
        if frequency == 0:
            return -up * down / self.ratio
        total = frequency + (1 - frequency) * self.ratio
        own = -down / (self.base * math.expm1(epsilon))
        mean = own * _divergence(frequency * up / total)
        mean = mean + (1 - own) * _divergence(frequency * down / total)
        return 2 * total * mean / frequency**2


def share(epsilon: float, own: Any, answers: bool) -> Share:
    """What answers (or else denials) are like of which a fraction ``own`` is an item's own.

    >>> share(2.0, 0.0, answers=False).ratio == math.exp(2.0)
    True
    """
    base = 1 / (1 + own * math.expm1(epsilon))
    return Share(base, base if answers else base * math.exp(epsilon))


def _divergence(x: Any) -> Any:
    """(1 + x) log(1 + x) - x, with the digits of x."""
    series = x * x * (1 / 2 - x * (1 / 6 - x * (1 / 12 - x / 20)))
    return np.where(np.abs(x) < 1e-4, series, xlog1py(1 + x, x) - x)


@dataclass(frozen=True)
class Answers:
    """The randomizer for g values.

    Args:
        epsilon: its privacy, at most 40.
        width: r, bits of a value, g = 2**r.
        own: values that count as an item's own in an answer, as what is added to its value.
        denied: the same for denials; none of them, and all denials are one blank.

    >>> blank = Answers(2.0, 2)
    >>> round(blank.told(0.0), 4), round(blank.noise, 3)
    (2.6881, 0.61)
    """

    epsilon: float
    width: int
    own: tuple[int, ...] = (0,)
    denied: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        epsilon = epsilon_within(self.epsilon)
        width = whole_number("width", self.width, 1, MOST_WIDTH)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "width", width)
        for name in ("own", "denied"):
            given = getattr(self, name)
            if not isinstance(given, (tuple, list)):
                raise ValueError(f"{name} = {given!r}: needs a list of values")
            values = tuple(whole_number(name, value, 0, 2**width - 1) for value in given)
            if len({*values}) < len(values) or len(values) == 2**width:
                raise ValueError(f"{name} = {given!r}: needs distinct values, and not all of them")
            object.__setattr__(self, name, values)
        if not self.own:
            raise ValueError("own = (): needs a value")

    @classmethod
    def best(cls, epsilon: float, widths: range, frequency: float = 0.0) -> Answers:
        """The randomizer of this family that tells most.

        Args:
            epsilon: its privacy.
            widths: bits of a value that are possible.
            frequency: the fraction of clients that hold the item; 0 for a small one.

        >>> [Answers.best(epsilon, range(1, 9)).width for epsilon in (0.25, 1.0, 2.0, 4.0, 8.0)]
        [1, 4, 2, 3, 6]
        """
        frequency = real_number("frequency", frequency, 0, 1)
        family = [one for width in widths for one in cls._family(epsilon, width)]
        return max(
            family, key=lambda one: one.told(frequency)
        )  # the first, and simplest, of equals

    @classmethod
    def _family(cls, epsilon: float, width: int) -> Iterator[Answers]:
        yield cls(epsilon, width)
        if width == 1:
            yield cls(epsilon, width, denied=(0,))
        if width == 4:
            yield cls(epsilon, width, _BENT)
            yield cls(epsilon, width, _BENT, _BENT)

    @property
    def values(self) -> int:
        """g, how many values there are.

        >>> Answers(2.0, 2).values
        4
        """
        return 1 << self.width

    @cached_property
    def answering(self) -> float:
        """How often a client that holds some item answers, and does not deny.

        >>> round(Answers(2.0, 2).answering, 3)
        0.912
        """
        answers, denials = self.shares
        return (denials.ratio - 1) / (denials.ratio - answers.ratio)

    @property
    def shares(self) -> tuple[Share, Share]:
        """Of answers, and of denials.

        >>> [round(float(one.ratio), 3) for one in Answers(2.0, 2).shares]
        [0.385, 7.389]
        """
        own, denied = (len(values) / self.values for values in (self.own, self.denied))
        return share(self.epsilon, own, True), share(self.epsilon, denied, False)

    def told(self, frequency: float) -> float:
        """Nats that a client tells about the item, over f^2 / 2: `Share.told` of all it can send.

        >>> round(Answers(1.0, 4, _BENT).told(0.0), 4), round(Answers(1.0, 1).told(0.5), 4)
        (0.3427, 0.2223)
        """
        answers, denials = self.shares
        told = self.answering * answers.told(self.epsilon, frequency)
        return float(told + (1 - self.answering) * denials.told(self.epsilon, frequency))

    @property
    def noise(self) -> float:
        """Standard deviation of an empty client's part in a frequency's estimate."""
        return 1 / math.sqrt(self.told(0.0))

    @cached_property
    def coins(self) -> tuple[int, int, int, int]:
        """Of 2**64 words, those with which a client that holds an item

        - answers, with any of the g values;
        - answers, with one of its own;
        - denies, with any of the g values;
        - denies, with one of its own.

        One that holds nothing answers with any value as often, and denies otherwise. All are whole
        numbers, chosen so that no two probabilities of the same message differ by more than e^eps.

        >>> sum(Answers(2.0, 2).coins) == WORDS
        True
        """
        own, denied = (Decimal(len(values)) / self.values for values in (self.own, self.denied))
        with decimal.localcontext(prec=80):
            # Own values are drawn as word % w, which prefers some of them by w / 2**64 at most.
            more = (Decimal(self.epsilon).exp() - 1) * (1 - Decimal(2) ** -58)

            def split(answer: int) -> tuple[int, int, int, int]:
                true = math.floor(answer * own * more)
                rest = WORDS - answer - true
                deny = math.ceil(rest / (1 + denied * more))
                return answer, true, deny, rest - deny

            def too_many(answer: int) -> bool:
                _, _, deny, denies_truly = split(answer)
                too_rare = WORDS - answer > deny * (1 + more)
                return deny < 0 or denies_truly < 0 or too_rare

            return split(bisect(too_many, 0, WORDS) - 1)

    def sums(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """For each sum of a value's bits, how an answer and a denial count for it: ``(g,)`` each.

        An own value that agrees in a sum counts for it, one that disagrees against it. A denial's
        weight is 1 / E.

        >>> Answers(2.0, 1).sums()[0]
        array([1., 1.])
        """
        number = np.arange(self.values)
        answer, denial = (
            (1 - 2.0 * (np.bitwise_count(number[:, None] & np.array(own, dtype=np.intp)) & 1)).sum(
                axis=1
            )
            for own in (self.own, self.denied)
        )
        return answer, denial * math.exp(-self.epsilon)


def epsilon_within(epsilon: float) -> float:
    """``epsilon``, if it is a number up to 40, and not so small that a coin is too coarse.

    >>> epsilon_within(2)
    2.0
    """
    return real_number("epsilon", epsilon, LEAST_EPSILON, MOST_EPSILON)
