"""The server's search: sums in, items with frequencies and intervals out::

    sums -> signals of all channels -> list decoding of every channel
         -> candidates that hash to their channel -> those that clear the threshold
         -> taken out of the signals, and what changed is decoded again

The threshold. An item that nobody holds has a p-value: how likely its estimate is by noise alone.
All 2**k possible items are hypotheses, and the step-up rule of Benjamini and Hochberg accepts R of
them if the R-th smallest p-value is at most fdr R / 2**k. Items that no list has count as not
accepted. So the expected fraction of false items among those found stays below ``fdr``.

The hash check. A channel whose item is not decoded has other words at the top of its list, often
close to the item's and so with a high estimate. Each of them hashes to the channel with a chance of
1/K. Only the best fdr K words of a list, and at least one, are candidates, so that such a channel
brings a false item with a probability of at most max(fdr, 1/K).

Taking out. A heavy item makes codewords close to its own look frequent, and hides lighter items of
its channel. So of each channel only the likeliest candidate is accepted at a time; then its signal
is subtracted, and the channel is searched again. In the end all frequencies are fitted together,
and what no longer stands out then was a shadow of others, and is given back.

What is left. Items that are too light to be found still disturb those that are: their codewords
agree with an item's more or less. How much of them there is, is seen in what is left of a channel
in the end: its mean square is above that of noise by the sum of their f^2. That goes into p-values
and intervals, as if it were noise. Where it is more than noise that is not true: codewords agree in
whole blocks, so the largest of 2**k correlations is larger than that of noise, and a decoder is led
astray by items as heavy as the one it is to find. So what is light beside all that is left in its
channel is given back too. Thousands of items of about one frequency, just too light to be found,
still are beyond this search: of those of them that are found some intervals fail.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ldpcash.base.arrays import Bits, Counts, Reals, batches
from ldpcash.codec.scl import SCLDecoder
from ldpcash.codec.symbol_decoder import SymbolDecoder
from ldpcash.histogram.channels import Channels
from ldpcash.histogram.hashing import ChannelHash
from ldpcash.histogram.intervals import conditional_interval, listing_chance

_BATCH_VALUES = 2**22  # numbers that are decoded at once
_MOST_FITS = 50  # rounds of fitting all frequencies together, of which a few are enough
_CROWD = 8  # times an item's f^2: more than that in its channel may not be unexplained


class Found(NamedTuple):
    """The items that were found, most frequent first, with 95 % intervals.

    >>> bits = np.array([[1, 0]], dtype=np.uint8)
    >>> Found(bits, np.array([0.7]), np.array([0.6]), np.array([0.8])).frequency.tolist()
    [0.7]
    """

    bits: Bits  #: (R, k)
    frequency: Reals  #: (R,)
    low: Reals  #: (R,)
    high: Reals  #: (R,)


def find_items(
    channels: Channels,
    channel_of: ChannelHash,
    sums: NDArray[Any],
    clients: int,
    decoder: SCLDecoder | SymbolDecoder,
    fdr: float = 0.05,
    decision: str = "soft",
) -> Found:
    """All items that stand out.

    Args:
        channels: what the clients used.
        channel_of: the hash that sends items to channels.
        sums: what the clients' reports add up to.
        clients: N.
        decoder: for the channels' code.
        fdr: the false-discovery rate that is aimed at.
        decision: "soft" decodes the means, "hard" their signs.

    >>> from ldpcash import Plan
    >>> plan = Plan.choose(10_000, 8, 2.0)
    >>> item, rng = np.array([[1, 0, 1, 1, 0, 0, 1, 0]], dtype=np.uint8), np.random.default_rng(1)
    >>> sums = plan.channels.draw(item, plan.channel_of(item), np.array([7000]), 10_000, rng)
    >>> found = find_items(plan.channels, plan.channel_of, sums, 10_000, plan.decoder())
    >>> found.bits.tolist(), found.frequency.round(1).tolist()
    ([[1, 0, 1, 1, 0, 0, 1, 0]], [0.7])
    """
    top = max(1, int(fdr * channels.count))
    search = _Search(channels, channel_of, sums, clients)
    if not search.alone > 0:  # nobody answered
        return Found(np.empty((0, channels.code.k), np.uint8), *np.empty((3, 0)))
    pool = np.empty((0, channels.code.k), dtype=np.uint8)
    stale = np.arange(channels.count)
    again = not channels.apart  # each channel hears a little of all others, until it is taken out
    while len(stale):
        fresh = [pool]
        for part in batches(len(stale), _BATCH_VALUES // channels.code.n):
            numbers = stale[part]
            rows = channels.means(search.signals, numbers)
            llr = -(np.sign(rows) if decision == "hard" else rows).astype(np.float32)
            lists = decoder.decode_list(llr)[0][:, :top]
            own = channel_of(lists.reshape(-1, channels.code.k)).reshape(lists.shape[:2])
            fresh.append(lists[own == numbers[:, None]])
        pool = search.not_yet_accepted(np.unique(np.concatenate(fresh), axis=0))
        stale = search.accept(pool, fdr)
        if again and not len(stale):
            stale, again = np.arange(channels.count), False
    knows_chance = decision == "soft" and isinstance(decoder, SymbolDecoder)
    return search.result(fdr, decoder.list_size if knows_chance else None)


class _Search:
    """What has been accepted so far, and what of the signals is left."""

    def __init__(
        self, channels: Channels, channel_of: ChannelHash, sums: NDArray[Any], clients: int
    ) -> None:
        self.channels = channels
        self.channel_of = channel_of
        self.sums = sums
        self.clients = clients
        self.all_signals = channels.signals(sums, clients)
        self.signals = self.all_signals.copy()  # less those of the items that were accepted
        self.alone = float(channels.variance(np.zeros(1), sums, clients)[0])  # of a rare item
        self.items = np.empty((0, channels.code.k), dtype=np.uint8)
        self.place: Counts = np.empty(0, dtype=np.intp)  # channel of each
        self.frequency = np.empty(0)
        self.p = np.empty(0)

    def not_yet_accepted(self, items: Bits) -> Bits:
        known = {row.tobytes() for row in self.items}
        return items[[row.tobytes() not in known for row in items]]

    def disturbance(self) -> Reals:
        """Variance that items still in each channel add to the estimate of another: ``(K,)``."""
        noise = self.channels.coordinates * self.alone
        left = np.maximum(self.channels.energy(self.signals) - noise, 0)
        return np.asarray(self.channels.alike * left)

    def heard(self, items: Bits, place: Counts, estimate: Reals) -> Reals:
        """What known items add to the estimates of others."""
        return self.channels.estimates(self.all_signals, items, place) - estimate

    def p_values(self, items: Bits, place: Counts, estimate: Reals, own: Reals) -> Reals:
        """Of items, of whose estimates a part ``own`` was taken out already."""
        # What an item adds to the mean square of its own channel does not disturb itself.
        left = self.disturbance()[place] - self.channels.alike * (estimate - own) ** 2
        steady = estimate / np.sqrt(1 + np.maximum(left, 0) / self.alone)
        heard = self.heard(items, place, estimate)
        return self.channels.p_value(steady, heard, self.sums, self.clients)

    def passing(self, p: Reals, fdr: float) -> NDArray[np.bool_]:
        """The step-up rule of Benjamini and Hochberg."""
        ranked = np.sort(p)
        passes = ranked <= fdr * np.arange(1, len(ranked) + 1) * 2.0**-self.channels.code.k
        return np.asarray(p <= ranked[passes].max(initial=-1.0))

    def accept(self, pool: Bits, fdr: float) -> Counts:
        """Accept what stands out, one item a channel, and say which channels changed."""
        place = self.channel_of(pool)
        estimate = self.channels.estimates(self.signals, pool, place)
        p = self.p_values(pool, place, estimate, np.zeros(len(pool)))
        order = np.argsort(-estimate, kind="stable")  # p-values may be 0, and so alike
        chosen = order[np.sort(np.unique(place[order], return_index=True)[1])]
        chosen = chosen[self.passing(np.concatenate([p[chosen], self.p]), fdr)[: len(chosen)]]
        self.channels.take_out(self.signals, pool[chosen], place[chosen], estimate[chosen])
        self.items = np.concatenate([self.items, pool[chosen]])
        self.place = np.concatenate([self.place, place[chosen]])
        self.frequency = np.concatenate([self.frequency, estimate[chosen]])
        self.p = np.concatenate([self.p, p[chosen]])
        changed = np.unique(place[chosen])
        self.fit(np.isin(self.place, changed))
        return changed

    def prune(self, fdr: float) -> None:
        """Give back what stood out only because of others that were not known then."""
        while True:
            self.fit(np.ones(len(self.items), dtype=np.bool_))
            self.p = self.p_values(self.items, self.place, self.frequency, self.frequency)
            left = self.disturbance()[self.place] / self.channels.alike  # sum of f^2 not explained
            clear = (self.frequency > 0) & (left <= _CROWD * self.frequency**2)
            stays = self.passing(self.p, fdr) & clear
            if stays.all():
                return
            gone = ~stays
            back = -self.frequency[gone]
            self.channels.take_out(self.signals, self.items[gone], self.place[gone], back)
            self.items, self.place = self.items[stays], self.place[stays]
            self.frequency, self.p = self.frequency[stays], self.p[stays]

    def fit(self, which: NDArray[np.bool_]) -> None:
        """Estimate these items again with all others out of their way, until nothing changes."""
        items, place = self.items[which], self.place[which]
        for _ in range(_MOST_FITS):
            more = self.channels.estimates(self.signals, items, place)
            self.channels.take_out(self.signals, items, place, more)
            self.frequency[which] += more
            if np.abs(more).max(initial=0) < 1e-3 * np.sqrt(self.alone):
                return

    def result(self, fdr: float, list_size: int | None) -> Found:
        """Items in order, with intervals; None where it is not known how often items are listed."""
        self.prune(fdr)
        order = np.argsort(-self.frequency, kind="stable")
        items, frequency, place = self.items[order], self.frequency[order], self.place[order]
        heard = self.heard(items, place, frequency)
        left = self.disturbance()[place] + self.channels.crowding(heard, self.clients)
        k = self.channels.code.k
        scale = np.sqrt(self.alone + left)
        bar = -ndtri(fdr * max(1, len(items)) * 2.0**-k) * scale

        def deviation(f: Reals) -> Reals:
            return np.sqrt(self.channels.variance(f, self.sums, self.clients) + left)

        def chance(u: Reals) -> Reals:
            if list_size is None:
                return np.ones_like(u)
            return listing_chance(u / scale[:, None], k, list_size)

        low, high = conditional_interval(frequency, deviation, np.minimum(bar, frequency), chance)
        # What just cleared the bar may be below it, interval and all; the estimate is shown inside.
        high = np.maximum(np.minimum(high, 1.0), frequency)
        return Found(items, frequency, np.minimum(low, frequency), high)
