"""The peer Bitstogram: items are read bit by bit, in the buckets of a public hash.

After Bassily, Nissim, Stemmer and Thakurta, "Practical locally private heavy hitters" (2017)::

    clients, split by round r and bit l -> (h_r(item), bit l of its codeword), by local hashing
    in each bucket of each round, each bit: which of its two values is more frequent? -> a word
    word -> decoder -> a candidate, if it hashes to its bucket
    candidates -> counted once more, by clients that were kept for that -> items

An item that is frequent in its bucket decides all bits there. Each bit is decided from N / (2 R n)
clients alone, so some are wrong, and a code has to correct them.

Where we choose: the code is a polar code, decoded from hard decisions by a list decoder. As in
`ldpcash.beyond.tree_hist`, clients are split between search and final count instead of halving
epsilon, and items are accepted by the rule of all methods. The oracle of the paper sends one bit,
which is ``values=2``; one of about e^eps + 1 values has less noise, and is taken unless given.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Bits, Reals, as_holds, as_items
from ldpcash.base.checks import fraction, whole_number
from ldpcash.beyond.local_hashing import HashOracle, held_counts, keys_of, lookup, split
from ldpcash.codec.polar import PolarCode
from ldpcash.codec.scl import SCLDecoder
from ldpcash.histogram.collector import Entry
from ldpcash.histogram.hashing import GOLDEN, ChannelHash, Seeds, mix
from ldpcash.histogram.packing import Packing

_STRENGTH = 1.3  # of what the code is made for, over what endless codes need


class BitReports(NamedTuple):
    """What clients send.

    >>> Bitstogram(8, 2.0).reports([[1] * 8], [True], np.random.default_rng(1)).values.shape
    (1,)
    """

    groups: NDArray[np.intp]  #: (N,): round times n plus bit, or the last one for the final count
    seeds: Seeds  #: (N,)
    values: NDArray[np.uint16]  #: (N,)


class Bitstogram:
    """Bitstogram for items of k bits.

    Privacy: a client is in one group, whatever its item is, and sends one report of a `HashOracle`.

    Args:
        k: bits of an item.
        epsilon: the privacy of each client's report.
        buckets: T, a power of two up to 65536.
        rounds: R, how often the search is repeated, with another hash.
        rate: of the code, at most; None to send an item's bits as they are.
        list_size: of the code's decoder.
        values: g of the oracle; 2 in the paper.
        final: the part of clients that is kept for the final count.
        fdr: false-discovery rate that the final count aims at.

    >>> peer = Bitstogram(40, epsilon=2.0)
    >>> peer.length, len(peer.share), peer.oracle.values
    (128, 129, 8)
    """

    def __init__(
        self,
        k: int,
        epsilon: float,
        buckets: int = 1024,
        rounds: int = 1,
        rate: float | None = 1 / 3,
        list_size: int = 8,
        values: int | None = None,
        final: float = 0.15,
        fdr: float = 0.05,
    ) -> None:
        self.k = whole_number("k", k, 1)
        self.rounds = whole_number("rounds", rounds, 1, 64)
        self.code = None if rate is None else _code(self.k, fraction("rate", rate))
        self._decoder = SCLDecoder(self.code, list_size) if self.code else None
        self.oracle = HashOracle(epsilon, values)
        self.epsilon = self.oracle.epsilon
        self.final = fraction("final", final)
        self.fdr = fraction("fdr", fdr)
        self.hashes = [ChannelHash(self.k, buckets, seed) for seed in range(self.rounds)]
        self.buckets = self.hashes[0].count
        self.length = self.code.n if self.code else self.k  #: bits of a word
        groups = self.rounds * self.length
        self.share = np.append(np.full(groups, (1 - self.final) / groups), self.final)

    def reports(self, bits: ArrayLike, holds: ArrayLike, rng: Generator) -> BitReports:
        """What each of N clients sends: ``(N, k)`` items, ``(N,)`` whether held.

        >>> peer, rng = Bitstogram(8, epsilon=2.0), np.random.default_rng(1)
        >>> sent = peer.reports([[1] * 8] * 1000, [True] * 1000, rng)
        >>> sent.values.shape, np.unique(sent.values)
        ((1000,), array([0, 1, 2, 3, 4, 5, 6, 7], dtype=uint16))
        """
        items = as_items(bits, self.k)
        held = as_holds(holds, len(items))
        groups = rng.choice(len(self.share), len(items), p=self.share)
        seeds = rng.integers(0, 2**64, len(items), dtype=np.uint64)
        words, keys = self._words(items), keys_of(items)  # the keys of the final count
        for number, hashed in enumerate(self.hashes):
            mine = np.flatnonzero(groups // self.length == number)
            mine = mine[groups[mine] < len(self.share) - 1]
            bit = words[mine, groups[mine] % self.length]
            keys[mine] = _cell_keys(2 * hashed(items[mine]) + bit)
        return BitReports(groups, seeds, self.oracle.send(seeds, keys, held, rng))

    def search(self, sent: BitReports, packing: Packing | None = None) -> list[Entry]:
        """The server's side: reports to the items that stand out, most frequent first.

        >>> peer, rng = Bitstogram(8, epsilon=3.0, buckets=16), np.random.default_rng(1)
        >>> items, holds = np.tile([1, 0, 1, 1, 0, 0, 1, 0], (10_000, 1)), np.arange(10_000) < 7000
        >>> [entry] = peer.search(peer.reports(items, holds, rng))
        >>> entry.item, round(entry.frequency, 1)
        (array([1, 0, 1, 1, 0, 0, 1, 0], dtype=uint8), 0.7)
        """
        order = np.argsort(sent.groups, kind="stable")
        ends = np.cumsum(np.bincount(sent.groups, minlength=len(self.share)))
        groups = np.split(order, ends[:-1])
        cells = _cell_keys(np.arange(2 * self.buckets))

        def count(group: int, keys: Seeds) -> Reals:
            mine = groups[group]
            return self.oracle.count(sent.seeds[mine], sent.values[mine], keys)

        found = np.array([count(group, cells) for group in range(len(groups) - 1)])
        candidates = self._candidates(found)
        last = len(self.share) - 1
        counts = count(last, keys_of(candidates))
        return self._accept(candidates, counts, len(groups[last]), packing)

    def draw(
        self,
        bits: ArrayLike,
        counts: ArrayLike,
        rng: Generator,
        empty: int = 0,
        packing: Packing | None = None,
    ) -> list[Entry]:
        """What `search` would find, with no client simulated.

        Args:
            bits: ``(M, k)``, the different items.
            counts: ``(M,)``, how many clients hold each.
            rng: source of randomness.
            empty: how many clients hold nothing.
            packing: to turn items into strings.

        >>> item, rng = [[1, 0, 1, 1, 0, 0, 1, 0]], np.random.default_rng(2)
        >>> [entry] = Bitstogram(8, 3.0, buckets=16).draw(item, [7000], rng, empty=3000)
        >>> entry.item, round(entry.frequency, 1)
        (array([1, 0, 1, 1, 0, 0, 1, 0], dtype=uint8), 0.7)
        """
        items = as_items(bits, self.k)
        holders, sizes = split(held_counts(counts, items), empty, self.share, rng)
        words, size = self._words(items).astype(np.intp), 2 * self.buckets
        found = np.empty((len(self.share) - 1, size))
        for group in range(len(found)):
            number, place = divmod(group, self.length)
            if place == 0:
                buckets = self.hashes[number](items)
            held = np.bincount(2 * buckets + words[:, place], holders[:, group], size)
            found[group] = self.oracle.draw(held.astype(np.int64), int(sizes[group]), rng)
        candidates = self._candidates(found)
        held = lookup(keys_of(candidates), keys_of(items), holders[:, -1])
        clients = int(sizes[-1])
        return self._accept(candidates, self.oracle.draw(held, clients, rng), clients, packing)

    def _words(self, items: Bits) -> Bits:
        return self.code.encode(items) if self.code else items

    def _candidates(self, counts: Reals) -> Bits:
        """Counts of each group's cells, ``(R n, 2 T)``, to different candidates ``(C, k)``."""
        kept = []
        pairs = counts.reshape(self.rounds, self.length, self.buckets, 2)
        for hashed, pair in zip(self.hashes, pairs, strict=True):
            ones = np.sign(pair[:, :, 1] - pair[:, :, 0]).T  # (T, n), 0 if both are as frequent
            words = self._decoder.decode(-ones) if self._decoder else (ones > 0).astype(np.uint8)
            kept.append(words[hashed(words) == np.arange(self.buckets)])
        return np.unique(np.concatenate(kept), axis=0)

    def _accept(
        self, candidates: Bits, counts: Reals, clients: int, packing: Packing | None
    ) -> list[Entry]:
        tested = len(candidates)
        return self.oracle.accept(candidates, counts, clients, tested, self.fdr, packing)


def _code(k: int, rate: float) -> PolarCode:
    """The shortest polar code of this rate or less, for the noise at which decisions are enough."""
    n = 2 ** math.ceil(math.log2(k / rate))
    needed = _STRENGTH * 2 * math.log(2) * k * math.pi / 2  # energy of a word in unit noise
    return PolarCode.construct(n, k, "ga", math.sqrt(n / needed))


def _cell_keys(cells: NDArray[np.intp]) -> Seeds:
    """Keys of 2 T cells: bucket and bit."""
    return mix(cells.astype(np.uint64) + GOLDEN)
