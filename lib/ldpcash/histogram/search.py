"""The server's search: channel means in, items and their frequencies out::

    means (T, K, n) -> list decoding of every channel -> candidates that hash to their channel
                    -> estimates over all groups      -> those that clear the threshold
                    -> taken out of the means, and their channels decoded again

The threshold. An item that nobody holds has a p-value: how likely its estimate is by noise alone.
All 2**k possible items are hypotheses, and the step-up rule of Benjamini and Hochberg accepts R of
them if the R-th smallest p-value is at most fdr R / 2**k. Items that no list has count as not
accepted. So the expected fraction of false items among those found stays below ``fdr``, up to what
other items in the same channel add to the noise.

The hash check. A channel whose item is not decoded has other words at the top of its list, often
close to the item's and so with a high estimate. Each of them hashes to the channel with a chance of
1/K. Only the best fdr K words of a list, and at least one, are candidates, so that such a channel
brings a false item with a probability of at most max(fdr, 1/K).

Taking out. A heavy item makes codewords close to its own look frequent, and hides lighter items of
its channel. So of each channel only the likeliest candidate is accepted at a time; then its signal
is subtracted, and the channel is searched again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldpcash.base.arrays import Bits, Reals, sum_halves
from ldpcash.codec.scl import SCLDecoder
from ldpcash.histogram.channels import Channels
from ldpcash.histogram.hashing import ChannelHash


class Found(NamedTuple):
    """The items that were found, most frequent first.

    >>> Found(np.array([[1, 0]], dtype=np.uint8), np.array([0.7])).frequency.tolist()
    [0.7]
    """

    bits: Bits  #: (R, k)
    frequency: Reals  #: (R,)


def find_items(
    channels: Channels,
    hashes: Sequence[ChannelHash],
    means: Reals,
    sizes: NDArray[np.int64],
    decoder: SCLDecoder,
    fdr: float = 0.05,
    decision: str = "soft",
) -> Found:
    """All items that stand out.

    Args:
        channels: what the clients used.
        hashes: of the T groups.
        means: ``(T, K, n)``, of each group and channel.
        sizes: ``(T,)``, clients of each group.
        decoder: for the channels' code.
        fdr: the false-discovery rate that is aimed at.
        decision: "soft" decodes the means, "hard" their signs.

    >>> from ldpcash import Plan
    >>> plan = Plan.choose(10_000, 8, 2.0)
    >>> item, rng = np.array([[1, 0, 1, 1, 0, 0, 1, 0]]), np.random.default_rng(1)
    >>> sums = plan.channels.draw(item, plan.hashes[0](item), [7000], 10_000, rng)
    >>> means = plan.channels.means(sums, 10_000)[None]
    >>> decoder = SCLDecoder(plan.channels.code, plan.list_size)
    >>> found = find_items(plan.channels, plan.hashes, means, np.array([10_000]), decoder)
    >>> found.bits.tolist(), found.frequency.round(1).tolist()
    ([[1, 0, 1, 1, 0, 0, 1, 0]], [0.7])
    """
    top = max(1, int(fdr * channels.count))
    search = _Search(channels, hashes, np.array(means), sizes)
    stale = [np.arange(channels.count) for _ in hashes]
    pool = np.empty((0, channels.code.k), dtype=np.uint8)
    while any(len(numbers) for numbers in stale):
        fresh = [pool]
        for group, numbers in enumerate(stale):
            rows = search.residual[group, numbers]
            llr = -(np.sign(rows) if decision == "hard" else rows).astype(np.float32)
            lists = decoder.decode_list(llr)[0][:, :top]
            own = hashes[group](lists.reshape(-1, channels.code.k)).reshape(lists.shape[:2])
            fresh.append(lists[own == numbers[:, None]])
        pool = search.not_yet_accepted(np.unique(np.concatenate(fresh), axis=0))
        stale = search.accept(pool, fdr)
    return search.result()


class _Search:
    """What has been accepted so far, and what of the means is left."""

    def __init__(
        self,
        channels: Channels,
        hashes: Sequence[ChannelHash],
        residual: Reals,
        sizes: NDArray[np.int64],
    ) -> None:
        self.channels = channels
        self.hashes = hashes
        self.residual = residual
        self.clients = int(sizes.sum())
        self.weights = sizes / self.clients
        self.items = np.empty((0, channels.code.k), dtype=np.uint8)
        self.frequency = np.empty(0)
        self.p = np.empty(0)

    def not_yet_accepted(self, items: Bits) -> Bits:
        known = {row.tobytes() for row in self.items}
        return items[[row.tobytes() not in known for row in items]]

    def places(self, items: Bits) -> NDArray[np.intp]:
        """The channel of each item in each group: ``(T, M)``."""
        return np.stack([channel(items) for channel in self.hashes])

    def estimates(self, items: Bits) -> Reals:
        """What is left of each item's frequency, over all groups: ``(M,)``."""
        signs = self.channels.signs(items)
        live = np.count_nonzero(self.channels.live)
        total = np.zeros(len(items))
        for weight, means, place in zip(
            self.weights, self.residual, self.places(items), strict=True
        ):
            total += weight / live * sum_halves((signs * means[place]).T)
        return total

    def neighbours(self, places: NDArray[np.intp]) -> Reals:
        """The frequency that was already taken out of each item's channel, over all groups."""
        total = np.zeros(places.shape[1])
        for weight, mine, place in zip(self.weights, self.places(self.items), places, strict=True):
            taken = np.bincount(mine, self.frequency, self.channels.count)
            total += weight * taken[place]
        return total

    def accept(self, pool: Bits, fdr: float) -> list[NDArray[np.intp]]:
        """Accept what stands out, one item a channel, and say which channels changed."""
        estimate = self.estimates(pool)
        places = self.places(pool)
        p = self.channels.p_value(estimate, self.neighbours(places), self.clients)
        taken: list[set[int]] = [set() for _ in self.hashes]
        first = []
        for item in np.argsort(-estimate, kind="stable"):  # p-values may be 0, and so alike
            own = places[:, item].tolist()
            if not any(place in used for place, used in zip(own, taken, strict=True)):
                first.append(item)
                for place, used in zip(own, taken, strict=True):
                    used.add(place)
        chosen = np.array(first, dtype=np.intp)
        ranked = np.sort(np.concatenate([self.p, p[chosen]]))
        passing = ranked <= fdr * np.arange(1, len(ranked) + 1) * 2.0**-self.channels.code.k
        bar = ranked[passing].max(initial=-1.0)
        chosen = chosen[p[chosen] <= bar]
        signs = self.channels.signs(pool[chosen])
        for means, place in zip(self.residual, places[:, chosen], strict=True):
            means[place] -= estimate[chosen, None] * signs
        self.items = np.concatenate([self.items, pool[chosen]])
        self.frequency = np.concatenate([self.frequency, estimate[chosen]])
        self.p = np.concatenate([self.p, p[chosen]])
        return [np.unique(place) for place in places[:, chosen]]

    def result(self) -> Found:
        """Items in order, each estimated again now that all others are out of its way."""
        frequency = self.frequency + self.estimates(self.items)
        order = np.argsort(-frequency, kind="stable")
        return Found(self.items[order], frequency[order])
