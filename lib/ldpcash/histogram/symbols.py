"""Symbols: what a report of `ProtChannels` carries, how it is randomized, and how much it tells.

A client has one of g = 2**b symbols to tell, or nothing. It sends that symbol, another one, or a
*blank*, if the randomizer has one::

                     its own symbol      each other      blank
    holds an item    any / g + true      any / g         rest
    holds nothing    any' / g            any' / g        rest'

Randomized response has no blank, and whoever holds nothing sends any symbol. That is best if nearly
all clients hold something. Where many hold nothing, they should seldom answer: then `Answers` of
`ldpcash.privacy` has the coins.

Estimates need only counts. Of A answers, M match an item's symbol; nobody's symbol matches A / g of
them in the mean, and N f clients that hold the item match true * (1 - 1/g) more of theirs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc

from ldpcash.base.arrays import Counts, Reals
from ldpcash.base.checks import positive, real_number, whole_number
from ldpcash.base.randomness import random_words
from ldpcash.codec.hadamard import code_of_symbols
from ldpcash.codec.polar import PolarCode
from ldpcash.privacy.answers import LEAST_EPSILON, MOST_EPSILON, MOST_WIDTH, WORDS, Answers

_LONGEST = 65536  # of codes
_CHECKS = 6  # bits that `code_of_symbols` adds to an item's


class SymbolResponse:
    """A randomizer of symbols of b bits, and the statistics of what comes of it.

    Args:
        epsilon: its privacy.
        width: b, bits of a symbol.
        blank: whether it has a blank, for epsilon up to 40.

    >>> response = SymbolResponse(2.0, 3)
    >>> round(response.true, 3), round(response.noise(empty=0.0), 3)
    (0.444, 0.851)
    >>> blank = SymbolResponse(2.0, 2, blank=True)
    >>> round(blank.noise(empty=0.0), 3), round(blank.noise(empty=1.0), 3)
    (0.983, 0.61)
    """

    def __init__(self, epsilon: float, width: int, blank: bool = False) -> None:
        self.epsilon = positive("epsilon", epsilon)
        if self.epsilon < LEAST_EPSILON:
            raise ValueError(f"epsilon = {epsilon!r}: needs at least {LEAST_EPSILON:.2g}")
        self.width = whole_number("width", width, 1, MOST_WIDTH)
        self.blank = bool(blank)
        self.symbols = g = 2**self.width
        if self.blank:
            any_symbol, true, _, _ = Answers(self.epsilon, self.width).coins
            any_empty = any_symbol
        else:
            # Beyond 700 exp overflows, and the coin is the same. It is rounded down, by far more
            # than what exp and expm1 are off, to be safe.
            bounded = min(self.epsilon, 700.0)
            share = math.expm1(bounded) / (math.exp(bounded) + g - 1) * (1 - 2.0**-48)
            true = int(share * WORDS)
            any_symbol, any_empty = WORDS - true, WORDS
        # A coin is a random word. These are the last ones that mean: true, any symbol; for clients
        # that hold nothing, any symbol. What is beyond them is a blank.
        self._last = np.array([true - 1, true + any_symbol - 1, any_empty - 1], dtype=np.uint64)
        self.true = true / WORDS  #: how often the truth is told
        self.any = any_symbol / WORDS  #: how often any symbol is sent instead
        self.any_empty = any_empty / WORDS  #: how often by a client that holds nothing
        self.match = self.true + self.any / g  #: how often the right symbol is sent
        self._worth = g / (g - 1) / self.true  # of a match: so many clients

    @classmethod
    def best(
        cls, epsilon: float, empty: float = 0.0, widths: range = range(1, MOST_WIDTH + 1)
    ) -> SymbolResponse:
        """The one with the least noise.

        Args:
            epsilon: its privacy.
            empty: the fraction of clients that is expected to hold nothing.
            widths: bits of a symbol that are possible.

        >>> [SymbolResponse.best(epsilon).width for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0)]
        [1, 2, 3, 6, 12]
        >>> SymbolResponse.best(2.0, empty=0.9).blank
        True
        """
        empty = real_number("empty", empty, 0, 1)
        kinds = [False]
        if LEAST_EPSILON <= positive("epsilon", epsilon) <= MOST_EPSILON and empty > 0:
            kinds.append(True)
        family = [cls(epsilon, b, blank) for blank in kinds for b in widths]
        return min(family, key=lambda one: one.noise(empty))

    def noise(self, empty: float) -> float:
        """Standard deviation of a frequency's estimate times sqrt(N), for an item that few hold, if
        this fraction of the clients holds nothing."""
        answers = (1 - empty) * (self.true + self.any) + empty * self.any_empty
        return math.sqrt(answers / (self.symbols - 1)) / self.true

    def send(self, symbols: Counts, held: NDArray[np.bool_], rng: Generator | None) -> Counts:
        """What clients send: ``(B,)`` symbols and whether they hold one, to ``(B,)``.

        A blank is sent as g. Every choice compares whole numbers, so that all probabilities are
        exact.

        Args:
            symbols: the true ones, below g.
            held: False for a client that holds nothing, whatever its symbol.
            rng: in simulations; None, the operating system's randomness.

        >>> response = SymbolResponse(30.0, 2)
        >>> response.send(np.array([3, 2]), np.array([True, True]), None)
        array([3, 2])
        """
        coin = random_words(held.shape, 64, rng)
        sent = random_words(held.shape, 16, rng).astype(np.intp) % self.symbols
        true, any_symbol, any_empty = self._last
        sent = np.where(held & (coin <= true), symbols, sent)
        answers = np.where(held, coin <= any_symbol, coin <= any_empty)
        return np.where(answers, sent, self.symbols)

    def variance(self, frequency: Reals, answers: ArrayLike, clients: int) -> Reals:
        """Variance of the estimate of a frequency, from A answers of N clients.

        An answer of a client that does not hold the item matches with 1/g; one that does is a coin
        of its own.

        >>> np.sqrt(SymbolResponse(2.0, 2).variance(np.array([0.7]), 10_000, 10_000)).round(3)
        array([0.01])
        """
        g, held = self.symbols, np.clip(frequency, 0, 1) * clients
        answering = self.true + self.any
        own = self.match * (g - 1) ** 2 + answering - self.match - (self.true * (g - 1)) ** 2
        others = np.maximum(np.asarray(answers) - held * answering, 0)
        scale = (clients * self.true * (g - 1)) ** 2
        return np.asarray((others * (g - 1) + held * own) / scale)

    def p_value(self, estimate: Reals, heard: Reals, answers: int, clients: int) -> Reals:
        """Probability of at least this estimate for an item that nobody holds.

        Answers that match such an item are binomial. Their mean is 1/g of all, and what known items
        add where its symbols are theirs.

        Args:
            estimate: ``(R,)``, of the item's frequency, without what known items add.
            heard: ``(R,)``, what they add: more or, where symbols differ, less than nothing.
            answers, clients: how many there are.

        >>> response, estimate = SymbolResponse(2.0, 2), np.array([0.0, 0.7])
        >>> response.p_value(estimate, np.zeros(2), 10_000, 10_000).round(2)
        array([0.5, 0. ])
        """
        each = clients / self._worth
        expected = np.clip(answers / self.symbols + heard * each, 1e-9, max(answers - 1, 1))
        matches = np.clip(expected + estimate * each, 1e-9, max(answers, 1))
        return np.asarray(betainc(matches, answers - matches + 1, expected / max(answers, 1)))

    def crowding(self, heard: Reals, clients: int) -> Reals:
        """Variance that known items add to an estimate: as that of Poisson variables, at most.

        >>> SymbolResponse(2.0, 2).crowding(np.array([-0.1, 0.0, 0.1]), 10_000).round(7)
        array([0.00e+00, 0.00e+00, 2.17e-05])
        """
        return np.maximum(heard, 0) * self._worth / clients


def symbol_code(k: int, width: int) -> PolarCode:
    """The code for items of k bits and symbols of b bits that a client sends.

    Where b is at most 3 the code's own symbols have six bits, which clients see from several sides
    (`ldpcash.protocols.views`). It is long where decoding costs little, and as short as works well
    where symbols are wide.

    Args:
        k: bits of an item.
        width: b.

    >>> [symbol_code(40, width).n for width in (3, 12)]
    [2048, 32768]
    """
    whole_number("k", k, 1)
    own = _own_width(width)
    return code_of_symbols(k, _length(k, own), own)


def widest(k: int) -> int:
    """The most bits that symbols can have, for items of k bits.

    >>> [widest(k) for k in (8, 128, 1000)]
    [12, 12, 8]
    """
    return max(b for b in range(1, MOST_WIDTH + 1) if _length(k, _own_width(b)) <= _LONGEST)


def _own_width(width: int) -> int:
    return 6 if width <= 3 else width


def _length(k: int, own: int) -> int:
    room = 4 if own <= 6 else 2 if own <= 8 else 4 / 3  # bits of all symbols over those needed
    return int(2 ** (own + math.ceil(math.log2(room * (k + _CHECKS) / own))))
