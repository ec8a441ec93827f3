"""Three peers that work on the items themselves: what a practitioner would take for short ones.

With few items there is no need for a code: a report can name items. Each names some of them, its
*support*, in which a client's own item is more often than any other::

    item -> a report, which supports some of all M = 2**k items       the client
    reports that support each item -> frequencies of all items        the server
    -> their Walsh-Hadamard transform, the mean y -> decoder -> the most frequent item

So y has the coordinates of `hadamard_code`, as in other protocols. It has at most 65536 of them, so
items have at most 16 bits. The last coordinate would tell the mean of all frequencies; it is 0, as
that of the code's words is. What is estimated is by how much an item's frequency exceeds the
mean of all, times M / (M - 1): for a unique heavy hitter that is its frequency, without bias.

A client that holds nothing sends a uniformly random report, as in Bassily and Smith (2015). No
item's report is more than e^eps times likelier or rarer. One that is random is, but for
`LocalHashing`, the same as that for a random item.

`reports` is the client's side, `estimate` the server's, as `ldpcash.protocols.protocol` says. The
law of `mean_reports` is exact, but for `SubsetSelection`, which says how far it is off.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Bits, Counts, Reals, as_holds, as_items
from ldpcash.base.checks import whole_number
from ldpcash.base.randomness import random_below, random_words
from ldpcash.codec.hadamard import hadamard_code, walsh_hadamard
from ldpcash.codec.polar import PolarCode
from ldpcash.codec.symbol_decoder import SymbolDecoder
from ldpcash.privacy.answers import WORDS, epsilon_within
from ldpcash.privacy.calibration import keep_threshold
from ldpcash.protocols.laws import holders, spread_evenly
from ldpcash.protocols.protocol import Decoder, Estimate, Protocol

_Flags = NDArray[np.bool_]


class Direct(Protocol):
    """What the three have in common: a coin that decides on support, and a server that counts."""

    noise: float  #: sqrt(N) times the deviation of a frequency's estimate, if nobody holds an item
    gap: float  #: by how much more often a client's own item is supported than any other one

    def __init__(self, code: PolarCode, epsilon: float, decoder: Decoder | None) -> None:
        if code.n != 2**code.k or code != hadamard_code(code.k):
            raise ValueError(f"code = {code!r}: items are sent as they are, with hadamard_code(k)")
        super().__init__(code, SymbolDecoder(code) if decoder is None else decoder)
        self.epsilon = epsilon_within(epsilon)

    def _respond(self, own: int, others: int) -> None:
        """Set the coin: ``own`` of own + others reports that are alike else support an item."""
        threshold = keep_threshold(self.epsilon, own, others)
        self._threshold = np.uint64(threshold)
        self.keep = threshold / WORDS  #: how often a client's own item is supported
        #: how often a report is chosen to support the own item; if it is not, it is any report
        self.truth = ((own + others) * threshold - own * WORDS) / (others * WORDS)

    @abstractmethod
    def _support(self, item: Counts, held: _Flags, true: _Flags, rng: Generator | None) -> _Flags:
        """Which items are supported: ``(N,)`` items, if held, and coins, to ``(N, M)``."""

    @abstractmethod
    def _counts(self, item: Counts, held: int, clients: int, rng: Generator) -> NDArray[Any]:
        """How many reports support each item, up to a constant: ``(T,)`` items to ``(M, T)``."""

    def reports(self, bits: ArrayLike, holds: ArrayLike, rng: Generator | None = None) -> Reals:
        """What a client's support is worth at each coordinate: ``(N, n)``.

        Every choice is a comparison of random words with whole numbers, so that all probabilities
        are exact.
        """
        items = as_items(bits, self.code.k)
        held = as_holds(holds, len(items))
        true = random_words((len(items),), 64, rng) < self._threshold
        return self._spectrum(self._support(_numbers(items), held, true, rng).T)

    def mean_reports(
        self, bits: ArrayLike, frequency: float, clients: int, rng: Generator
    ) -> Reals:
        """How many reports support each item, drawn without clients, as frequencies in y."""
        items = as_items(bits, self.code.k)
        held, clients = holders(frequency, clients), int(clients)
        return self._spectrum(self._counts(_numbers(items), held, clients, rng)) / clients

    def _spectrum(self, counts: NDArray[Any]) -> Reals:
        """Counts of support ``(M, T)`` to y times N, ``(T, n)``.

        Coordinate c of a codeword is the sum of those bits of the item at which c is 0. The
        correlation of an item's signal with all of the transform is its count; without the last
        coordinate, it is its count less the mean of all.
        """
        n = self.code.n
        sums = walsh_hadamard(np.array(counts, dtype=np.float64, order="C")[None])[0, ::-1]
        sums[-1] = 0
        return (-math.sqrt(n) / (n - 1) / self.gap * sums).T

    def estimate(self, y: ArrayLike) -> Estimate:
        """Decode the mean, which finds the largest frequency, and correlate, which reads it off."""
        means = self._means(y)
        bits = self.decoder.decode(-means)
        return Estimate(bits, self._correlation(bits, means))


class SubsetSelection(Direct):
    """A random subset of w items, which has the client's own more often than any other one.

    After Wang et al., "Mutual information optimally local private discrete distribution estimation"
    (2016), and Ye and Barg, "Optimal schemes for discrete distribution estimation under locally
    differential privacy" (2018). The own item is in it with probability
    w e^eps / (w e^eps + M - w), and all subsets that agree in this are equally likely.

    Args:
        code: `hadamard_code` of k bits; there are M = 2**k items.
        epsilon: the privacy of each client's report, at most 40.
        decoder: a `SymbolDecoder` unless given.
        size: w; the one with the least noise, near M / (e^eps + 1), unless given.

    >>> rng = np.random.default_rng(1)
    >>> subset = SubsetSelection(hadamard_code(8), epsilon=2.0)
    >>> subset.size, round(subset.noise, 3)
    (31, 0.851)
    >>> y = subset.mean_reports([[1, 0, 1, 1, 0, 0, 1, 0]], frequency=0.3, clients=1000, rng=rng)
    >>> bits, frequency = subset.estimate(y)
    >>> bits[0], round(float(frequency[0]), 2)
    (array([1, 0, 1, 1, 0, 0, 1, 0], dtype=uint8), 0.33)
    """

    def __init__(
        self,
        code: PolarCode,
        epsilon: float,
        decoder: Decoder | None = None,
        size: int | None = None,
    ) -> None:
        super().__init__(code, epsilon, decoder)
        M, odds = code.n, math.exp(self.epsilon)
        if size is None:
            near = int(M / (odds + 1))
            nearest = range(max(1, near), near + 2)
            size = min(nearest, key=lambda w: (w * odds + M - w) ** 2 / (w * (M - w)))
        self.size = w = whole_number("size", size, 1, M - 1)
        self._respond(w, M - w)
        self.gap = self.truth * (M - w) / (M - 1)
        self.noise = math.sqrt(w / (M - w)) / self.truth

    def _support(self, item: Counts, held: _Flags, true: _Flags, rng: Generator | None) -> _Flags:
        """The w items with the smallest random keys, where that of a held one is first or last.

        If two keys at the border are alike, all are drawn again: no subset is preferred.
        """
        keys = random_words((len(item), self.code.n), 16, rng).astype(np.int32)
        keys[held, item[held]] = np.where(true[held], -1, 2**16)
        ordered = np.sort(keys, axis=1)
        support = keys < ordered[:, self.size, None]
        again = np.flatnonzero(ordered[:, self.size - 1] == ordered[:, self.size])
        if len(again):
            support[again] = self._support(item[again], held[again], true[again], rng)
        return np.asarray(support)

    def _counts(self, item: Counts, held: int, clients: int, rng: Generator) -> NDArray[Any]:
        """Of random subsets, and of the others in subsets that were chosen to have the own item.

        Subsets of exactly w items couple the counts of different items. Here they are drawn as
        independent binomials, less their mean and scaled to have the right covariance. So means,
        variances and covariances are exact; third moments are too small by a part of about 1.5 / M,
        and higher ones are off by as little. For w = 1 the law is exact.
        """
        M, w, trials = self.code.n, self.size, len(item)
        true = rng.binomial(held, self.truth, size=trials)
        if w == 1:
            counts = spread_evenly(clients - true, self.code.k, rng).astype(np.int64)
            counts[item, np.arange(trials)] += true
            return counts
        anyone = rng.binomial((clients - true)[:, None], w / M, size=(trials, M))
        others = rng.binomial(true[:, None], (w - 1) / (M - 1), size=(trials, M))
        own = np.arange(trials), item
        others[own] = 0
        around = others - others.sum(axis=1, keepdims=True) / (M - 1)
        around *= math.sqrt((M - 1) / (M - 2))
        around[own] = true * ((M - w) / (M - 1))
        return (math.sqrt(M / (M - 1)) * anyone + around).T


class KaryResponse(SubsetSelection):
    """k-ary randomized response: the own item, or any other one.

    After Warner (1965) and Kairouz, Bonawitz and Ramage, "Discrete distribution estimation under
    local privacy" (2016). The own item is sent with probability e^eps / (e^eps + M - 1), each other
    one with 1 / (e^eps + M - 1): a subset of one item.

    Args:
        code: `hadamard_code` of k bits; there are M = 2**k items.
        epsilon: the privacy of each client's report, at most 40.
        decoder: a `SymbolDecoder` unless given.

    >>> [round(KaryResponse(hadamard_code(8), epsilon).noise, 2) for epsilon in (1.0, 4.0, 6.0)]
    [9.39, 0.36, 0.1]
    """

    def __init__(self, code: PolarCode, epsilon: float, decoder: Decoder | None = None) -> None:
        super().__init__(code, epsilon, decoder, size=1)


class LocalHashing(Direct):
    """Optimal local hashing: randomized response on what a public random function makes of items.

    After Wang, Blocki, Li and Jha, "Locally differentially private protocols for frequency
    estimation" (2017). Each client has a function of its own, which sends items to g values. It
    sends its item's value with probability e^eps / (e^eps + g - 1), each other one with
    1 / (e^eps + g - 1), and so supports all items with that value. The function is an ideal one:
    values of different items are independent and uniform.

    Args:
        code: `hadamard_code` of k bits; there are M = 2**k items.
        epsilon: the privacy of each client's report, at most 40.
        decoder: a `SymbolDecoder` unless given.
        values: g; the one with the least noise for many items, near e^eps + 1, unless given.

    >>> hashing = LocalHashing(hadamard_code(8), epsilon=2.0)
    >>> hashing.values, round(hashing.noise, 3)
    (8, 0.853)
    """

    def __init__(
        self,
        code: PolarCode,
        epsilon: float,
        decoder: Decoder | None = None,
        values: int | None = None,
    ) -> None:
        super().__init__(code, epsilon, decoder)
        if values is None:
            odds = math.exp(self.epsilon)
            near = int(odds + 1)
            values = min((near, near + 1), key=lambda g: (odds + g - 1) ** 2 / (g - 1))
        self.values = whole_number("values", values, 2, 2**60)
        self._respond(1, self.values - 1)
        q = 1 / self.values
        self.gap = self.truth * (1 - q)
        self.noise = math.sqrt(code.n / (code.n - 1) * q * (1 - q)) / self.gap

    def _support(self, item: Counts, held: _Flags, true: _Flags, rng: Generator | None) -> _Flags:
        """All items that the function sends to the value that is sent."""
        g, clients = np.uint64(self.values), len(item)
        hashed = random_words((clients, self.code.n), 64, rng) % g
        own = hashed[np.arange(clients), item]
        wrong = (own + 1 + random_below(self.values - 1, clients, rng)) % g
        value = np.where(held, np.where(true, own, wrong), random_below(self.values, clients, rng))
        return np.asarray(hashed == value[:, None])

    def _counts(self, item: Counts, held: int, clients: int, rng: Generator) -> NDArray[Any]:
        """Who tells the truth supports its item; all other support has probability 1 / g."""
        trials, q = len(item), 1 / self.values
        true = rng.binomial(held, self.truth, size=trials)
        counts = rng.binomial(clients, q, size=(trials, self.code.n))
        counts[np.arange(trials), item] = true + rng.binomial(clients - true, q)
        return counts.T


def _numbers(items: Bits) -> Counts:
    """``(N, k)`` bits, most significant first, to ``(N,)`` numbers."""
    return items @ (1 << np.arange(items.shape[1])[::-1])
