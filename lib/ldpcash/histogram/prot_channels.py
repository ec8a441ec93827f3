"""Symbols of the codeword, randomized, in all channels at once, from one table of counts.

A seed stands for a view j of the codeword and for a number a below K. In channel c a symbol is
masked with h_c * a, a product in a finite field with a factor h_c for each channel::

    codeword -> its symbol in view j, masked, randomized      the client   `reports`
             -> a count of (a, symbol, j)                     the server   `add`
             -> how the sums of a symbol's bits came out      the server   `signals`

A report so is a single count, however many channels there are. Unmasked in another channel, an
item's symbol is off by (h_c + h_c') * a, which over all a spreads it evenly: it is noise there.

The server has no need to unmask. The sum w of a symbol's bits, unmasked in channel c, is the sum w
of what was sent plus the sum of those bits of a that w * h_c touches: one coefficient of the
Walsh-Hadamard transform over (a, symbol). So one fast transform unfolds the table for all channels.

There are at most as many masks as channels. If a symbol has more than log2(K) bits, some sums of
two channels are the same coefficient, one in K. So a heavy item is heard a little in all channels
until it is taken out, and it is taken out of all of them.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ldpcash.base.arrays import Bits, Counts, Reals, batches, sum_halves
from ldpcash.codec.fields import multiply
from ldpcash.codec.hadamard import walsh_hadamard
from ldpcash.codec.polar import PolarCode
from ldpcash.histogram.channels import Channels
from ldpcash.histogram.hashing import Seeds
from ldpcash.histogram.symbols import SymbolResponse
from ldpcash.protocols.views import Views

_BATCH_VALUES = 2**22  # numbers that are unfolded at once


class ProtChannels(Channels):
    """Symbols of the codeword under a randomizer, in all channels at once.

    Unmasked in its own channel a client's symbol tells about the item; in every other channel it is
    noise. With b = 1 and no blank a symbol is a sign, and this is `Prot` in each channel.

    Args:
        code: what items are sent with: any `PolarCode` for b = 1, a `symbol_code` for b > 1.
        epsilon: the privacy of each client's report.
        count: K, how many channels, a power of two.
        width: b, bits of a symbol.
        blank: whether clients that hold nothing should rather hand in a blank.
        empty: the fraction of clients that is expected to hold nothing, for `noise` alone.

    >>> from ldpcash.histogram.symbols import symbol_code
    >>> rng = np.random.default_rng(1)
    >>> prot = ProtChannels(symbol_code(8, 2), epsilon=2.0, count=4, width=2)
    >>> items, channel = np.zeros((1, 8), dtype=np.uint8), np.array([2])
    >>> sums, seeds = prot.empty(), np.arange(3, dtype=np.uint64)
    >>> prot.add(sums, seeds, prot.reports(items, channel, np.array([0, 0, -1]), seeds, rng))
    >>> int(sums.sum())  # every report is one count
    3
    >>> sums = prot.draw(items, channel, np.array([7000]), 10_000, rng)
    >>> signals = prot.signals(sums, 10_000)
    >>> y = prot.means(signals, np.arange(4))
    >>> y[:, prot.live].mean(axis=1).round(1) + 0.0  # 0 is sent as -1: three channels are empty
    array([ 0. ,  0. , -0.7,  0. ])
    >>> prot.estimates(signals, items, channel).round(1)
    array([0.7])
    """

    kind = np.int64

    def __init__(
        self,
        code: PolarCode,
        epsilon: float,
        count: int,
        width: int = 1,
        blank: bool = False,
        empty: float = 0.0,
    ) -> None:
        super().__init__(code, epsilon, count, empty)
        self.views = Views(code, width)
        self.response = SymbolResponse(self.epsilon, width, blank)
        self.width, self.blank = self.response.width, self.response.blank
        self.symbols = self.response.symbols
        self.largest = self.symbols - 1 + self.blank
        self.payload = np.dtype("u1" if self.largest < 256 else "<u2")
        self.shape = (self.count, self.symbols, self.views.count)
        self.coordinates = (self.symbols - 1) * self.views.count
        self.apart = self.count == 1 or self.symbols <= self.count  # see above
        self.noise = self.response.noise(self.empty_share)
        levels = self.count.bit_length() - 1
        # (K, g): the bits of a that each sum of bits needs in each channel, from the masks of
        # single bits; then where that coefficient of the transform stands.
        sums = np.arange(self.symbols)
        touched = np.zeros((self.count, self.symbols), dtype=np.intp)
        for bit in range(levels):
            mask = self._mask(np.arange(self.count), np.array(1 << bit))
            touched |= (np.bitwise_count(mask[:, None] & sums).astype(np.intp) & 1) << bit
        self._place = touched * self.symbols + sums

    def _mask(self, channel: Counts, a: Counts) -> Counts:
        """What numbers a mask symbols with in channels: arrays that fit together."""
        field = max(self.count.bit_length() - 1, self.response.width)
        return multiply(channel, a, field) & self.symbols - 1

    @cached_property
    def masks(self) -> Counts:
        """``(K, K)``: what each number a masks symbols with in each channel."""
        return self._mask(np.arange(self.count)[:, None], np.arange(self.count))

    @cached_property
    def live(self) -> NDArray[np.bool_]:
        ones = np.ones((self.views.count, self.symbols, 1), dtype=np.int8)
        return np.asarray(self.views.sums_of(ones)[:, 0] > 0)

    def reports(
        self, items: Bits, channel: Counts, who: Counts, seeds: Seeds, rng: Generator | None
    ) -> NDArray[Any]:
        """One symbol a client: ``(B,)`` numbers, 2**b for a blank."""
        symbols = self._masked(items, channel, who, *self._meaning(seeds))
        return self.response.send(symbols, who >= 0, rng).astype(self.payload)

    def _masked(self, items: Bits, channel: Counts, who: Counts, a: Counts, view: Counts) -> Counts:
        """The true symbol of each client, masked; 0 for one that holds nothing."""
        symbols = np.zeros(len(who), dtype=np.intp)
        held = np.flatnonzero(who >= 0)
        present, which = np.unique(who[held], return_inverse=True)
        for some in batches(len(present), _BATCH_VALUES // self.code.n):
            values = self._values(items[present[some]])
            mine = (which >= some.start) & (which < some.stop)
            client, row = held[mine], which[mine] - some.start
            mask = self._mask(channel[who[client]], a[client])
            symbols[client] = values[row, view[client]] ^ mask
        return symbols

    def honest(self, sent: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(sent <= self.largest)

    def add(self, sums: NDArray[Any], seeds: Seeds, sent: NDArray[Any]) -> None:
        a, view = self._meaning(seeds)
        if self.blank:
            answers = sent < self.symbols
            a, view, sent = a[answers], view[answers], sent[answers]
        np.add.at(sums.reshape(-1), self._cell(a, sent, view), 1)

    def _cell(self, a: Counts, symbol: NDArray[Any], view: Counts) -> Counts:
        """Where a symbol is counted, in sums as one row."""
        return (a * self.symbols + symbol) * self.views.count + view

    def _meaning(self, seeds: Seeds) -> tuple[Counts, Counts]:
        """The number a and the view that each seed stands for."""
        return self._split((seeds & np.uint64(self.count * self.views.count - 1)).astype(np.intp))

    def _split(self, low: Counts) -> tuple[Counts, Counts]:
        return low // self.views.count, low % self.views.count

    def _values(self, items: Bits) -> Counts:
        """``(M, k)`` items to their ``(M, views)`` symbols."""
        return self.views.values_of(self.code.encode(items))

    def _signs(self, items: Bits) -> Reals:
        """``(M, k)`` items to ``(M, g, views)``: how the sums of each symbol's bits come out, 0 as
        -1 as everywhere; the empty sum is left out, as 0."""
        values = self._values(items)[:, None, :]
        odd = np.bitwise_count(values & np.arange(self.symbols)[:, None]) & 1
        signs: Reals = 2 * odd.astype(np.float64) - 1
        signs[:, 0] = 0
        return signs

    def draw(
        self, items: Bits, channel: Counts, counts: Counts, clients: int, rng: Generator
    ) -> NDArray[Any]:
        """Answers that tell the truth fall evenly on seeds, all others on all cells."""
        response = self.response
        answering = response.true + response.any
        held = np.asarray(counts)
        share = [response.true, response.any, max(0.0, 1 - answering)]
        told, anything, _ = rng.multinomial(held, share).T.reshape(3, -1)
        nothing = rng.binomial(clients - int(held.sum()), response.any_empty)
        sums = self.empty().reshape(-1)
        for part in batches(int(anything.sum()) + int(nothing), _BATCH_VALUES):
            np.add.at(sums, rng.integers(0, sums.size, part.stop - part.start), 1)
        who = np.repeat(np.arange(len(items)), told)
        for part in batches(len(who), _BATCH_VALUES):
            seeds = rng.integers(0, self.count * self.views.count, part.stop - part.start)
            a, view = self._split(seeds)
            symbols = self._masked(items, channel, who[part], a, view)
            np.add.at(sums, self._cell(a, symbols, view), 1)
        return sums.reshape(self.shape)

    def signals(self, sums: NDArray[Any], clients: int) -> Reals:
        """``(K * g, views)`` coefficients of the transform."""
        flat = sums.reshape(1, self.count * self.symbols, self.views.count).copy()
        scale = -self.views.count / (self.response.true * clients)
        return np.asarray(walsh_hadamard(flat)[0] * scale)

    def means(self, signals: Reals, channels: Counts) -> Reals:
        spectra = signals[self._place[channels]].transpose(2, 1, 0)
        return np.ascontiguousarray(self.views.sums_of(spectra).T)

    def estimates(self, signals: Reals, items: Bits, channel: Counts) -> Reals:
        found = np.empty(len(items))
        for part in self._batches(items):
            heard = signals[self._place[channel[part]]] * self._signs(items[part])
            sums = sum_halves(heard.reshape(len(heard), -1).T)
            found[part] = sums / ((self.symbols - 1) * self.views.count)
        return found

    def take_out(self, signals: Reals, items: Bits, channel: Counts, frequency: Reals) -> None:
        for part in self._batches(items):
            signs = self._signs(items[part]) * frequency[part, None, None]
            for place, sign in zip(self._place[channel[part]], signs, strict=True):
                signals[place] -= sign

    def _batches(self, items: Bits) -> Any:
        return batches(len(items), _BATCH_VALUES // (self.symbols * self.views.count))

    def energy(self, signals: Reals) -> Reals:
        rows = np.square(signals).mean(axis=1)
        return np.asarray(rows[self._place[:, 1:]].mean(axis=1))

    def variance(self, frequency: Reals, sums: NDArray[Any], clients: int) -> Reals:
        return self.response.variance(frequency, int(sums.sum()), clients)

    def p_value(self, estimate: Reals, heard: Reals, sums: NDArray[Any], clients: int) -> Reals:
        return self.response.p_value(estimate, heard, int(sums.sum()), clients)

    def crowding(self, heard: Reals, clients: int) -> Reals:
        return self.response.crowding(heard, clients)
