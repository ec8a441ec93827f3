"""The peer TreeHist: a prefix tree whose levels are counted by a private sketch.

After Bassily, Nissim, Stemmer and Thakurta, "Practical locally private heavy hitters" (2017)::

    clients, split over levels -> one of level l reports the first l bits of its item  `CountSketch`
    root -> its two children -> those above a threshold are kept -> their children ... -> leaves
    leaves -> counted once more, by clients that were kept for that -> items

The sketch, Hashtogram in the paper, is a count sketch of t rows with m cells that no client sees in
full: a client is in one row, where a public hash gives its key a cell and a sign, and of the row's
Hadamard transform it sends one bit. So a server takes N steps and keeps t m numbers, but a bit is
all that a client says, however large epsilon is.

Where we choose: the paper lets every client take part in the search and in the final count, with
half of epsilon each. Here a client does one of them, with all of it, which is less noise. An item
of the final count is accepted by the rule that all methods of this project have. And the paper's
tree has a level for every bit; levels of several bits, as the defaults have, find more.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from ldpcash.base.arrays import Bits, Reals, as_holds, as_items, batches, plus_or_minus
from ldpcash.base.checks import fraction, one_of, positive, real_number, whole_number
from ldpcash.beyond.local_hashing import accept, held_counts, keys_of, largest, split
from ldpcash.beyond.pem import extended
from ldpcash.codec.hadamard import walsh_hadamard
from ldpcash.histogram.collector import Entry
from ldpcash.histogram.hashing import Seeds, mix
from ldpcash.histogram.packing import Packing

_MOST_CELLS = 2**16  # of a row
_BATCH_VALUES = 2**20  # cells that are looked up at once


class SketchReports(NamedTuple):
    """What clients send to a sketch.

    >>> rng, key = np.random.default_rng(1), np.array([7], dtype=np.uint64)
    >>> len(CountSketch(2.0).reports(key, np.array([True]), rng))
    3
    """

    rows: NDArray[np.intp]  #: (N,), below t
    places: NDArray[np.intp]  #: (N,), below m: where in the row's Hadamard transform
    signs: NDArray[np.int8]  #: (N,), +1 or -1, the private bit


class CountSketch:
    """Hashtogram: counts keys in t rows of m cells, from one private bit a client.

    Privacy: row and place do not depend on the item. The bit is the true one with probability
    e^eps / (e^eps + 1); for a client that holds nothing it is a fair coin, which is between.

    Args:
        epsilon: the privacy of each client's report.
        hashes: t, how many rows there are.
        width: m, cells of a row, a power of two up to 65536.
        combine: "mean" of all rows, or their "median" as in the paper's analysis.
        seed: of the public hashes.

    >>> sketch = CountSketch(2.0)
    >>> round(sketch.noise, 3), round(CountSketch(2.0, combine="median").noise, 3)
    (1.313, 1.646)
    """

    def __init__(
        self,
        epsilon: float,
        hashes: int = 64,
        width: int = 1024,
        combine: str = "mean",
        seed: int = 0,
    ) -> None:
        self.epsilon = positive("epsilon", epsilon)
        self.hashes = whole_number("hashes", hashes, 1, _MOST_CELLS)
        self.width = whole_number("width", width, 1, _MOST_CELLS)
        if self.width & (self.width - 1):
            raise ValueError(f"width = {width!r}: needs a power of two")
        self.combine = one_of("combine", combine, ("mean", "median"))
        self.flip = 1 / (math.exp(min(self.epsilon, 700.0)) + 1)  #: how often the bit is wrong
        self.scale = 1 / math.tanh(self.epsilon / 2)  #: what a bit is worth, without bias
        #: sqrt(clients) times the deviation of a frequency's estimate, without collisions
        self.noise = self.scale * (math.sqrt(math.pi / 2) if combine == "median" else 1.0)
        stream = np.random.default_rng(SeedSequence([whole_number("seed", seed, 0)]))
        self._seeds = stream.integers(0, 2**64, self.hashes, dtype=np.uint64)

    def reports(self, keys: Seeds, held: NDArray[np.bool_], rng: Generator) -> SketchReports:
        """What clients send: ``(N,)`` keys, and whether they hold one.

        >>> keys, rng = np.arange(100, dtype=np.uint64), np.random.default_rng(1)
        >>> sent = CountSketch(2.0).reports(keys, keys < 50, rng)
        >>> sent.rows.shape, np.unique(sent.signs)
        ((100,), array([-1,  1], dtype=int8))
        """
        rows = rng.integers(0, self.hashes, len(keys))
        places = rng.integers(0, self.width, len(keys))
        cells, negative = self._hash(self._seeds[rows], keys)
        true = (np.bitwise_count(cells & places) & 1).astype(bool) == negative
        flipped = rng.random(len(keys)) < np.where(held, self.flip, 0.5)
        return SketchReports(rows, places, plus_or_minus(true != flipped))

    def estimate(self, sent: SketchReports, keys: Seeds) -> Reals:
        """Frequencies of candidates: ``(C,)`` keys to ``(C,)``, unbiased.

        >>> sketch, rng, keys = CountSketch(2.0), np.random.default_rng(1), np.uint64([7, 8])
        >>> sent = sketch.reports(np.repeat(keys, [7000, 3000]), np.full(10_000, True), rng)
        >>> sketch.estimate(sent, keys).round(1)
        array([0.7, 0.3])
        """
        t, m, clients = self.hashes, self.width, len(sent.rows)
        if clients == 0:
            raise ValueError("the group has no client: there is nothing to count")
        # Every row's transform, and that transformed back: cells, each with its noise.
        sums = np.bincount(sent.places * t + sent.rows, sent.signs, m * t)
        table = walsh_hadamard(sums.reshape(1, m, t))[0]
        size = np.bincount(sent.rows, minlength=t)
        found = np.empty(len(keys))
        for part in batches(len(keys), _BATCH_VALUES // t):
            cells, negative = self._hash(self._seeds, keys[part, None])
            counts = table[cells, np.arange(t)] * np.where(negative, -1.0, 1.0)
            if self.combine == "mean":
                found[part] = counts.sum(axis=1) / clients
            else:  # a row without clients, as there may be, says nothing
                found[part] = np.median(counts[:, size > 0] / size[size > 0], axis=1)
        return found * self.scale

    def deviation(self, clients: int) -> float:
        """Standard deviation of an estimate for an item that few hold, without collisions.

        >>> round(CountSketch(2.0).deviation(10**6), 5)
        0.00131
        """
        return self.noise / math.sqrt(clients)

    def _hash(self, seeds: Seeds, keys: Seeds) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """The cell and the sign of a key in a row: seeds and keys broadcast."""
        words = mix(seeds ^ keys)
        cells = (words >> np.uint64(32)).astype(np.intp) & (self.width - 1)
        return cells, (words & np.uint64(1)).astype(bool)


class TreeReports(NamedTuple):
    """What clients send: to which group, and what to its sketch.

    >>> TreeHist(8, 2.0).reports([[1] * 8], [True], np.random.default_rng(1)).groups.shape
    (1,)
    """

    groups: NDArray[np.intp]  #: (N,): level, or the last one for the final count
    sketch: SketchReports


class TreeHist:
    """TreeHist for items of k bits.

    Privacy: a client is in one group, whatever its item is, and sends one report of a sketch.

    Args:
        k: bits of an item, up to 256.
        epsilon: the privacy of each client's report.
        start: bits of the first prefixes, of which all are counted; the paper's tree begins with 1.
        step: bits from level to level; 1 in the paper.
        threshold: standard errors that a prefix has to be counted with, to be kept.
        final: the part of clients that is kept for the final count.
        hashes, width, combine: of the sketches.
        keep: how many prefixes are kept at most, a bound on the server's time.
        fdr: false-discovery rate that the final count aims at.

    >>> tree = TreeHist(40, epsilon=2.0)
    >>> tree.lengths, tree.share.round(2).tolist()
    ([16, 24, 32, 40], [0.2, 0.2, 0.2, 0.2, 0.2])
    >>> len(TreeHist(40, epsilon=2.0, start=1, step=1).lengths)  # as in the paper
    40
    """

    def __init__(
        self,
        k: int,
        epsilon: float,
        start: int = 16,
        step: int = 8,
        threshold: float = 2.5,
        final: float = 0.2,
        hashes: int = 64,
        width: int = 1024,
        combine: str = "mean",
        keep: int = 100,
        fdr: float = 0.05,
    ) -> None:
        self.k = whole_number("k", k, 1, 256)
        self.start = min(whole_number("start", start, 1, 20), self.k)
        self.step = whole_number("step", step, 1, 16)
        self.threshold = real_number("threshold", threshold)
        self.final = fraction("final", final)
        self.keep = whole_number("keep", keep, 1)
        self.fdr = fraction("fdr", fdr)
        self.lengths = [*range(self.start, self.k, self.step), self.k]
        groups = len(self.lengths)
        self.share = np.append(np.full(groups, (1 - self.final) / groups), self.final)
        self.sketches = [
            CountSketch(epsilon, hashes, width, combine, seed) for seed in range(groups + 1)
        ]
        self.epsilon = self.sketches[0].epsilon

    def smallest(self, clients: int) -> float:
        """The frequency of an item alone in its branch that is kept at half of its levels.

        >>> round(TreeHist(40, epsilon=2.0).smallest(10**6), 4)
        0.0073
        """
        mine = whole_number("clients", clients, 1) * float(self.share[0])
        return self.threshold * self.sketches[0].noise / math.sqrt(mine)

    def reports(self, bits: ArrayLike, holds: ArrayLike, rng: Generator) -> TreeReports:
        """What each of N clients sends: ``(N, k)`` items, ``(N,)`` whether held.

        >>> tree, rng = TreeHist(40, epsilon=2.0), np.random.default_rng(1)
        >>> sent = tree.reports([[1] * 40] * 1000, [True] * 1000, rng)
        >>> np.unique(sent.groups), sent.sketch.signs.shape  # four levels, and the final count
        (array([0, 1, 2, 3, 4]), (1000,))
        """
        items = as_items(bits, self.k)
        held = as_holds(holds, len(items))
        groups = rng.choice(len(self.share), len(items), p=self.share)
        rows, places = np.zeros((2, len(items)), dtype=np.intp)
        signs = np.zeros(len(items), dtype=np.int8)
        for group, (sketch, length) in enumerate(self._groups()):
            mine = groups == group
            sent = sketch.reports(keys_of(items[mine, :length]), held[mine], rng)
            rows[mine], places[mine], signs[mine] = sent
        return TreeReports(groups, SketchReports(rows, places, signs))

    def search(self, sent: TreeReports, packing: Packing | None = None) -> list[Entry]:
        """The server's side: reports to the items that stand out, most frequent first.

        >>> tree, rng = TreeHist(8, epsilon=3.0), np.random.default_rng(2)
        >>> items, holds = np.tile([1, 0, 1, 1, 0, 0, 1, 0], (10_000, 1)), np.arange(10_000) < 7000
        >>> [entry] = tree.search(tree.reports(items, holds, rng))
        >>> entry.item, round(entry.frequency, 1)
        (array([1, 0, 1, 1, 0, 0, 1, 0], dtype=uint8), 0.7)
        """
        groups = [
            SketchReports(*(part[sent.groups == group] for part in sent.sketch))
            for group in range(len(self.share))
        ]
        return self._grow(groups, packing)

    def draw(
        self,
        bits: ArrayLike,
        counts: ArrayLike,
        rng: Generator,
        empty: int = 0,
        packing: Packing | None = None,
    ) -> list[Entry]:
        """What `search` would find. Reports are so short that each is drawn, grouped by item.

        Args:
            bits: ``(M, k)``, the different items.
            counts: ``(M,)``, how many clients hold each.
            rng: source of randomness.
            empty: how many clients hold nothing.
            packing: to turn items into strings.

        >>> item, rng = [[1, 0, 1, 1, 0, 0, 1, 0]], np.random.default_rng(1)
        >>> [entry] = TreeHist(8, epsilon=3.0).draw(item, [7000], rng, empty=3000)
        >>> entry.item, round(entry.frequency, 1)
        (array([1, 0, 1, 1, 0, 0, 1, 0], dtype=uint8), 0.7)
        """
        items = as_items(bits, self.k)
        holders, sizes = split(held_counts(counts, items), empty, self.share, rng)
        groups = []
        for group, (sketch, length) in enumerate(self._groups()):
            keys = np.zeros(sizes[group], dtype=np.uint64)
            own = np.repeat(keys_of(items[:, :length]), holders[:, group])
            keys[: len(own)] = own
            groups.append(sketch.reports(keys, np.arange(len(keys)) < len(own), rng))
        return self._grow(groups, packing)

    def _groups(self) -> list[tuple[CountSketch, int]]:
        """For each group its sketch, and how many bits it reports."""
        return list(zip(self.sketches, [*self.lengths, self.k], strict=True))

    def _grow(self, groups: list[SketchReports], packing: Packing | None) -> list[Entry]:
        """From the root to the leaves, and the final count."""
        kept: Bits = np.zeros((1, 0), dtype=np.uint8)
        for sent, (sketch, length) in zip(groups[:-1], self._groups(), strict=False):
            candidates = extended(kept, length - kept.shape[1])
            found = sketch.estimate(sent, keys_of(candidates))
            order = largest(found, self.keep)
            least = self.threshold * sketch.deviation(len(sent.rows))
            kept = candidates[order[found[order] > least]]
            if len(kept) == 0:
                return []
        sketch, clients = self.sketches[-1], len(groups[-1].rows)
        found = sketch.estimate(groups[-1], keys_of(kept))
        deviation = sketch.deviation(clients)
        half = np.full(len(found), -ndtri(0.025) * deviation)
        p = ndtr(-found / deviation)
        return accept(kept, found, half, p, len(kept), self.fdr, packing)
