"""What PrivateExpanderSketch could find at most, a bound in the shape of the other peers.

Bun, Nelson and Stemmer, "Heavy hitters and the structure of local privacy" (2018), have the best
error that is possible up to a constant, which they do not give::

    item -> codeword of M symbols; at each, hashes of the item that point to d other symbols
    clients, split into M groups -> one of group m reports (bucket, hash m, symbol m with pointers)
    in each group, bucket and hash value: the most frequent symbol -> lists, linked by the pointers
    bucket -> clusters of linked symbols -> decoder of the code -> candidates -> counted once more

The pointers form an expander graph, so that a cluster survives if some symbols are wrong. Here the
first step is drawn from its law, and everything after it is granted:

- every item is alone in its bucket and hash value;
- symbols that are wrong are known to be wrong, and the code is the best there is: an item is found
  if its right symbols have k bits or more between them, without which no decoder could know it;
- nothing else is ever taken for an item before the final count;
- reports are by optimal local hashing instead of one bit, and clients are split between search and
  final count instead of halving epsilon.

So whatever constants one chooses for the rest, the method finds no more than this.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import bdtrc
from scipy.stats import binom

from ldpcash.base.arrays import Reals, as_items
from ldpcash.base.checks import fraction, whole_number
from ldpcash.beyond.local_hashing import HashOracle, held_counts, split
from ldpcash.histogram.collector import Entry
from ldpcash.histogram.packing import Packing
from ldpcash.paper.theory import simplex_error, strength_at

_MOST_BITS = 60  # of a symbol
_MOST_PAYLOAD = 16  # unless given


class ExpanderBound:
    """What PrivateExpanderSketch finds of items of k bits, if all but noise is in its favour.

    Privacy: a client is in one group, whatever its item is, and sends one report of a `HashOracle`.

    Args:
        k: bits of an item.
        epsilon: the privacy of each client's report.
        payload: bits of the code that a symbol has. The server counts every symbol in every
            cell, so there are not many: unless given, 16 at most.
        coordinates: M, symbols of a codeword, and groups of clients; as few as can be unless given.
        edges: d, how many hashes of other coordinates a symbol has besides.
        hashed: bits of each of those hashes.
        final: the part of clients that is kept for the final count.
        fdr: false-discovery rate that the final count aims at.

    >>> bound = ExpanderBound(40, epsilon=2.0)
    >>> bound.coordinates, bound.needed, bound.symbol
    (3, 3, 14)
    """

    def __init__(
        self,
        k: int,
        epsilon: float,
        payload: int | None = None,
        coordinates: int | None = None,
        edges: int = 0,
        hashed: int = 0,
        final: float = 0.1,
        fdr: float = 0.05,
    ) -> None:
        self.k = whole_number("k", k, 1)
        if payload is None:
            payload = math.ceil(self.k / math.ceil(self.k / _MOST_PAYLOAD))
        self.payload = whole_number("payload", payload, 1, _MOST_BITS)
        self.needed = -(-self.k // self.payload)  #: right symbols, without which no item is found
        coordinates = self.needed if coordinates is None else coordinates
        self.coordinates = whole_number("coordinates", coordinates, 1)
        if self.coordinates < self.needed:
            raise ValueError(
                f"coordinates = {coordinates!r}: {self.k} bits are {self.needed} symbols at least"
            )
        self.edges = whole_number("edges", edges, 0)
        self.hashed = whole_number("hashed", hashed, 0)
        self.symbol = self.payload + self.edges * self.hashed  #: bits of a symbol, all in all
        if self.symbol > _MOST_BITS:
            raise ValueError(f"edges = {edges!r}: a symbol of {self.symbol} bits, above 60")
        self.oracle = HashOracle(epsilon)
        self.epsilon = self.oracle.epsilon
        self.final = fraction("final", final)
        self.fdr = fraction("fdr", fdr)
        groups = self.coordinates
        self.share = np.append(np.full(groups, (1 - self.final) / groups), self.final)

    @classmethod
    def published(cls, k: int, epsilon: float) -> ExpanderBound:
        """The sizes of the paper, with all constants at their smallest.

        M = k / log k symbols, hashes of log k bits, a graph of degree 3, the least that expands,
        and a code of rate 1/2.

        >>> bound = ExpanderBound.published(40, 2.0)
        >>> bound.coordinates, bound.needed, bound.symbol
        (8, 4, 25)
        """
        log = max(1, round(math.log2(whole_number("k", k, 2))))
        coordinates = math.ceil(k / math.log2(k))
        return cls(k, epsilon, -(-2 * k // coordinates), coordinates, 3, log)

    def right(self, held: ArrayLike, clients: int, rng: Generator) -> Reals:
        """Chances that symbols win, once reports are in: of ``clients``, ``(...)`` hold the item.

        The reports that fit the right symbol are drawn; those that fit each of all others are
        binomial, and if none has more, the symbol is the most frequent one, or one of them.

        >>> bound, rng = ExpanderBound(40, epsilon=2.0), np.random.default_rng(1)
        >>> bound.right([1000, 5000], 300_000, rng).round(3)
        array([0., 1.])
        """
        fitting = self.oracle.draw(np.asarray(held), clients, rng)
        above = bdtrc(fitting, clients, 1 / self.oracle.values)  # one other has more
        return np.asarray(np.exp((2.0**self.symbol - 1) * np.log1p(-np.minimum(above, 1 - 1e-16))))

    def smallest(self, clients: int) -> float:
        """The frequency at which enough symbols are right half the time, with Gaussian noise.

        >>> bound = ExpanderBound(40, epsilon=2.0)
        >>> round(bound.smallest(10**6), 4), round(bound.published(40, 2.0).smallest(10**6), 4)
        (0.0075, 0.0136)
        """

        def failure(strength: float) -> float:
            win = 1 - simplex_error(self.symbol, strength)
            return float(binom.cdf(self.needed - 1, self.coordinates, win))

        group = whole_number("clients", clients, 1) * float(self.share[0])
        return strength_at(failure, 0.5) * self.oracle.noise / math.sqrt(group)

    def draw(
        self,
        bits: ArrayLike,
        counts: ArrayLike,
        rng: Generator,
        empty: int = 0,
        packing: Packing | None = None,
    ) -> list[Entry]:
        """What would be found at most.

        Args:
            bits: ``(M, k)``, the different items.
            counts: ``(M,)``, how many clients hold each.
            rng: source of randomness.
            empty: how many clients hold nothing.
            packing: to turn items into strings.

        >>> bound, rng = ExpanderBound(8, 3.0, payload=4), np.random.default_rng(1)
        >>> [entry] = bound.draw([[1, 0, 1, 1, 0, 0, 1, 0]], [7000], rng, empty=3000)
        >>> entry.item, round(entry.frequency, 1)
        (array([1, 0, 1, 1, 0, 0, 1, 0], dtype=uint8), 0.7)
        """
        items = as_items(bits, self.k)
        holders, sizes = split(held_counts(counts, items), empty, self.share, rng)
        wins = np.zeros(len(items), dtype=np.intp)
        for group, clients in enumerate(sizes[:-1].tolist()):
            wins += rng.random(len(items)) < self.right(holders[:, group], clients, rng)
        found = (wins >= self.needed) & (np.asarray(counts) > 0)
        clients = int(sizes[-1])
        support = self.oracle.draw(holders[found, -1], clients, rng)
        tested = int(found.sum())
        return self.oracle.accept(items[found], support, clients, tested, self.fdr, packing)
