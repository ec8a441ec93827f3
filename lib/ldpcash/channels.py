"""Many items at once: each is hashed to one of K channels, and in each channel a protocol runs.

A client runs the protocol for a unique heavy hitter in all K channels, with its item in channel
h(item) and holding nothing in the others. The server collects one mean for each channel::

    item -> h(item), one of K channels, and codeword x
         -> report about all K channels at once        the client   `reports`
         -> sums, (K, cells): what reports add up to    the server  `add`
         -> means y, (K, n): f x plus noise, f the item's frequency, x = +-1    `means`

`ProtChannels` is epsilon-private. Two items change the report in at most two channels, and there by
a factor of (p over 1/g) times (1/g over q), which is p / q = e^eps: K channels cost no more than
one. For the same reason they need not cost more to send. What a client says in a channel where it
holds nothing is uniformly random, so the client may let a generator with a public seed say it. Its
report is the seed and one symbol.

`CashChannels` is (epsilon, delta)-private. Two items in different channels are sqrt(2) apart, less
than two items in the same one can be; but a report is K n real numbers.

Nobody needs to simulate clients to simulate means: `draw` draws the sums from their exact law.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, log_ndtr

from ldpcash.checks import positive, whole_number
from ldpcash.normals import normals
from ldpcash.polar import MAX_ENUMERABLE, Bits, PolarCode, as_bits, reliability
from ldpcash.privacy import gaussian_sigma
from ldpcash.protocols import Counts, Reals, spread_evenly

Seeds = NDArray[np.uint64]

MAX_SYMBOL_BITS = 6
_MAX_CHANNELS = 2**16
_BATCH_VALUES = 2**21  # numbers that a server unfolds at once
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class ChannelHash:
    """A public pairwise-independent hash of k bits to [K]: a random affine map of bits.

    For two different items the pair of their channels is uniform over all K**2.

    Args:
        k: bits of an item.
        channels: K, a power of two.
        seed: decides the map; whoever has the seed has the same map.

    >>> ChannelHash(4, 8, seed=1)([[0, 0, 0, 1], [1, 0, 0, 1]])
    array([5, 3])
    """

    def __init__(self, k: int, channels: int, seed: int | SeedSequence) -> None:
        self.k = whole_number("k", k, 1)
        self.channels = check_channels(channels)
        rng = np.random.default_rng(seed)
        levels = self.channels.bit_length() - 1
        self._matrix = _words(rng.integers(0, 2, (levels, self.k), dtype=np.uint8))
        self._shift = rng.integers(0, 2, levels, dtype=np.uint8)

    def __call__(self, bits: ArrayLike) -> NDArray[np.intp]:
        """``(M, k)`` bits to ``(M,)`` channels."""
        items = _words(as_bits("bits", bits, self.k))
        channel = np.zeros(len(items), dtype=np.intp)
        for row, shift in zip(self._matrix, self._shift, strict=True):
            parity = np.bitwise_count(items & row).sum(axis=1, dtype=np.uint8) + shift & 1
            channel = 2 * channel + parity
        return channel


def check_channels(channels: int) -> int:
    """K as an int, if it is a power of two that a report can be about."""
    number = whole_number("channels", channels, 1, _MAX_CHANNELS)
    if number & (number - 1):
        raise ValueError(f"channels = {channels!r}: needs a power of two")
    return number


def _words(bits: Bits) -> Seeds:
    """``(M, k)`` bits as ``(M, words)``."""
    padded = np.pad(bits, [(0, 0), (0, -bits.shape[1] % 64)])
    return np.ascontiguousarray(np.packbits(padded, axis=1)).view(np.uint64)


def mix(words: Seeds) -> Seeds:
    """The last step of the generator SplitMix64: a bijection of words that scrambles them well."""
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)


def lanes(seeds: Seeds, channels: int) -> NDArray[np.uint16]:
    """What a public seed says in each channel: ``(B,)`` to ``(B, K)`` numbers below 2**16."""
    steps = np.arange(1, -(-channels // 4) + 1, dtype=np.uint64) * _GOLDEN
    words = mix(seeds[:, None] + steps).astype("<u8", copy=False)
    return words.view("<u2")[:, :channels]


def groups(seeds: Seeds, number: int) -> NDArray[np.intp]:
    """The group that each client belongs to, of T = ``number``, all alike: its seed decides."""
    return (mix(~seeds) % np.uint64(number)).astype(np.intp)


class Channels(ABC):
    """What both kinds of channels have in common."""

    noise: float  # the estimate of a frequency from N reports has standard deviation noise/sqrt(N)
    live: NDArray[np.bool_]  # (n,): coordinates of the code that carry something
    cells: int  # what a channel's reports add up to are so many numbers
    kind: type[np.generic]  # of the sums
    payload: np.dtype[Any]  # what a client sends beside its seed

    def __init__(self, code: PolarCode, epsilon: float, channels: int) -> None:
        self.code = code
        self.epsilon = positive("epsilon", epsilon)
        self.channels = check_channels(channels)

    @abstractmethod
    def reports(
        self, bits: ArrayLike, channel: ArrayLike, seeds: Seeds, rng: Generator
    ) -> NDArray[Any]:
        """What each of B clients sends beside its seed.

        Args:
            bits: ``(B, k)``, the items.
            channel: ``(B,)``, the channel of each item; -1 for a client that holds nothing.
            seeds: ``(B,)``, each client's public seed.
            rng: the clients' own randomness.
        """

    @abstractmethod
    def add(self, sums: NDArray[Any], seeds: Seeds, sent: NDArray[Any]) -> None:
        """Add B reports to ``sums``, ``(K, cells)``, in place."""

    @abstractmethod
    def draw(
        self, bits: Bits, channel: ArrayLike, counts: ArrayLike, clients: int, rng: Generator
    ) -> NDArray[Any]:
        """Sums of all reports, from their exact law.

        Args:
            bits: ``(M, k)``, the different items.
            channel, counts: ``(M,)``, the channel of each and how many clients hold it.
            clients: N, those that hold nothing too.
            rng: source of randomness.
        """

    @abstractmethod
    def means(self, sums: NDArray[Any], clients: int) -> Reals:
        """Sums to means ``(K, n)``, whose expectation is the sum of f x over the channel's items;
        0 where the code's coordinate is not live."""

    @abstractmethod
    def variance(self, frequency: Reals, clients: int) -> Reals:
        """Variance of the estimate of a frequency from N reports."""

    @abstractmethod
    def p_value(self, estimate: Reals, others: Reals, clients: int) -> Reals:
        """Probability of at least this estimate for an item that nobody holds.

        ``others`` is the known frequency of other items in its channel, which add to its noise.
        """

    def signs(self, bits: Bits) -> Reals:
        """``(M, k)`` bits to ``(M, n)``: 1 as +1, 0 as -1, and 0 where nothing is sent."""
        return np.where(self.live, 2.0 * self.code.encode(bits) - 1, 0.0)

    def empty(self) -> NDArray[Any]:
        """The sums of no reports."""
        return np.zeros((self.channels, self.cells), dtype=self.kind)


# Symbols under randomized response


def symbol_bits(epsilon: float) -> int:
    """Bits of a symbol that tell the server most: the b with the largest (g - 1) lambda**2.

    >>> [symbol_bits(epsilon) for epsilon in (0.5, 1.0, 2.0, 4.0)]
    [1, 2, 3, 6]
    """
    positive("epsilon", epsilon)
    return min(range(1, MAX_SYMBOL_BITS + 1), key=lambda b: _noise(_truth(epsilon, 2**b), 2**b))


def _truth(epsilon: float, g: int) -> float:
    """lambda: randomized response on g symbols tells the truth so often, a random symbol else.

    The likeliest symbol is then e^eps as likely as any other. Rounded down, to be safe.
    """
    return math.expm1(epsilon) / (math.exp(epsilon) + g - 1) * (1 - 2.0**-48)


def _noise(truth: float, g: int) -> float:
    return 1 / (truth * math.sqrt(g - 1))


def symbol_code(k: int, bits: int, strength: float, n: int | None = None) -> PolarCode:
    """A polar code whose words are made of symbols of b bits, for a signal of given strength.

    For b = 1 it is the ga code. For b > 1, words consist of blocks of 2**b coordinates, and the
    coordinates of a block are all sums of b bits: the block is one symbol, written in the Hadamard
    code. A polar code has such words if each information index has exactly one 0 among the b bits
    of the index that number the coordinates of a block.

    Args:
        k: bits of an item.
        bits: b, of a symbol.
        strength: f sqrt(N) / noise at which the code should work.
        n: length; the shortest with at most one information bit in four indices, unless given.

    >>> symbol_code(40, 3, 8.0).n
    512
    """
    whole_number("bits", bits, 1, MAX_SYMBOL_BITS)
    width, place = _block(bits)
    if n is None:
        n = width * 2 ** math.ceil(math.log2(4 * k / bits))
    index = np.arange(n)
    ones = np.bitwise_count(index >> place & (width - 1))
    allowed = np.flatnonzero(ones == bits - 1)
    if len(allowed) < k:
        raise ValueError(f"n = {n}: a code of {bits}-bit symbols has {len(allowed)} < k = {k} bits")
    live = n - n // width if bits > 1 else n
    rank = reliability(n, "ga", math.sqrt(live) / strength)[allowed]
    return PolarCode(n, allowed[np.argsort(rank, kind="stable")[-k:]])


def _block(bits: int) -> tuple[int, int]:
    """Coordinates of a block, and which bit of their index is the lowest that numbers them.

    Where a block lies matters only to the decoder. These places decode best at k = 40.
    """
    if bits == 1:
        return 1, 0
    return 2**bits, {2: 0, 3: 1}.get(bits, 3)


class ProtChannels(Channels):
    """Symbols of the codeword under randomized response, in all channels at once.

    A client's public seed names, for each channel, a block j of the codeword and a mask of b bits.
    The client sends one symbol: its codeword's at block j of channel h(item), plus that mask, under
    randomized response. Unmasked in its own channel it tells about the item; in every other channel
    it is uniformly random. With b = 1 a symbol is a sign, and this is `Prot` in each channel.

    Args:
        code: what items are sent with: any `PolarCode` for b = 1, a `symbol_code` for b > 1.
        epsilon: the privacy of each client's report.
        channels: K, a power of two.
        bits: b, of a symbol.
    """

    payload = np.dtype("u1")
    kind = np.int64

    def __init__(self, code: PolarCode, epsilon: float, channels: int, bits: int = 1) -> None:
        super().__init__(code, epsilon, channels)
        self.bits = whole_number("bits", bits, 1, MAX_SYMBOL_BITS)
        self.symbols = 2**self.bits
        width, place = _block(self.bits)
        if code.n < width << place:
            raise ValueError(f"code = {code!r}: {self.bits}-bit symbols need n >= {width << place}")
        if width > 1:
            ones = np.bitwise_count(code.info >> place & (width - 1))
            if (ones != self.bits - 1).any():
                raise ValueError(
                    f"code = {code!r}: not of {self.bits}-bit symbols, see symbol_code"
                )
        self._shape = (code.n // (width << place), width, 1 << place)  # of a codeword
        self.blocks = code.n // width
        self.cells = self.blocks * self.symbols
        last = np.zeros(self._shape, dtype=bool)
        last[:, -1] = width > 1  # the sum of no bits
        self.live = ~last.ravel()
        self.truth = _truth(self.epsilon, self.symbols)
        self.noise = _noise(self.truth, self.symbols)

    def codeword_symbols(self, bits: ArrayLike) -> Counts:
        """``(M, k)`` bits to the ``(M, blocks)`` symbols of their codewords."""
        words = self.code.encode(bits)
        words = words.reshape(len(words), *self._shape)
        if self.bits > 1:  # coordinate c is the sum of the bits at which c is 0
            words = words[:, :, [self.symbols - 1 - 2**i for i in range(self.bits)]]
        powers = 2 ** np.arange(self.bits, dtype=np.uint8)
        return (words * powers[:, None]).sum(axis=2, dtype=np.uint8).reshape(len(words), -1)

    def reports(
        self, bits: ArrayLike, channel: ArrayLike, seeds: Seeds, rng: Generator
    ) -> NDArray[Any]:
        """One symbol a client: ``(B,)`` numbers below 2**b."""
        own = np.asarray(channel)
        client = np.arange(len(own))
        # A client that holds nothing sends a random symbol, as most of the others do.
        sent = rng.integers(0, self.symbols, len(own), dtype=np.uint8)
        cell = _lanes_at(seeds, np.maximum(own, 0)) % self.cells
        block, mask = cell // self.symbols, cell % self.symbols
        truth = self.codeword_symbols(bits)[client, block] ^ mask.astype(np.uint8)
        told = (rng.random(len(own)) < self.truth) & (own >= 0)
        return np.where(told, truth, sent)

    def add(self, sums: NDArray[Any], seeds: Seeds, sent: NDArray[Any]) -> None:
        """Unmask every symbol in every channel, and count."""
        start = np.arange(self.channels) * self.cells
        at_once = max(1, _BATCH_VALUES // self.channels)
        for first in range(0, len(seeds), at_once):
            part = slice(first, first + at_once)
            cell = lanes(seeds[part], self.channels) & np.uint16(self.cells - 1)
            where = (cell ^ sent[part, None]) + start
            sums += np.bincount(where.ravel(), minlength=sums.size).reshape(sums.shape)

    def draw(
        self, bits: Bits, channel: ArrayLike, counts: ArrayLike, clients: int, rng: Generator
    ) -> NDArray[Any]:
        """Clients that tell the truth spread over the blocks, all others over all cells."""
        truthful = rng.binomial(np.asarray(counts), self.truth)
        own = np.asarray(channel)
        others = clients - np.bincount(own, truthful, self.channels).astype(np.int64)
        sums = spread_evenly(others, self.cells.bit_length() - 1, rng).T.astype(np.int64)
        block = np.arange(self.blocks) * self.symbols
        at_once = max(1, _BATCH_VALUES // self.blocks)
        for first in range(0, len(own), at_once):
            part = slice(first, first + at_once)
            told = spread_evenly(truthful[part], self.blocks.bit_length() - 1, rng).T
            np.add.at(sums, (own[part, None], block + self.codeword_symbols(bits[part])), told)
        return sums

    def means(self, sums: NDArray[Any], clients: int) -> Reals:
        """Counts of symbols to what they say of each sum of a symbol's bits (Walsh-Hadamard)."""
        # The cells of a block number its symbols; a codeword's coordinates are [high, block, low].
        high, width, low = self._shape
        spectrum: Reals = sums.astype(np.float64)
        half = 1
        while half < self.symbols:
            pairs = spectrum.reshape(self.channels, -1, 2, half)
            spectrum = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]])
            spectrum = np.moveaxis(spectrum, 0, 2)
            half *= 2
        spectrum = spectrum.reshape(self.channels, high, low, self.symbols)
        # Coordinate c is the sum number ~c of the bits; a sum of 1 makes the spectrum negative.
        y = spectrum[..., :0:-1] * (-self.blocks / (self.truth * clients))
        y = np.moveaxis(y, -1, 2)
        if width > 1:
            y = np.concatenate([y, np.zeros((self.channels, high, 1, low))], axis=2)
        return np.ascontiguousarray(y).reshape(self.channels, self.code.n)

    def variance(self, frequency: Reals, clients: int) -> Reals:
        """Of clients that do not hold the item and of clients that do, each a coin of its own."""
        g, held = self.symbols, np.clip(frequency, 0, 1)
        match = self.truth + (1 - self.truth) / g
        own = g**2 * match * (1 - match) / (self.truth * (g - 1)) ** 2
        return np.asarray(((1 - held) * self.noise**2 + held * own) / clients)

    def p_value(self, estimate: Reals, others: Reals, clients: int) -> Reals:
        """Clients that match an item nobody holds are binomial with 1/g.

        Those who hold another item of its channel match it with some probability up to p, and their
        variance is taken to be the largest that this allows.
        """
        g, held = self.symbols, np.clip(others, 0, 1)
        match = min(0.5, self.truth + (1 - self.truth) / g)
        excess = g**2 * match * (1 - match) / (g - 1)
        estimate = np.asarray(estimate) / np.sqrt(1 - held + held * excess)
        matches = clients / g * (1 + estimate * self.truth * (g - 1))
        matches = np.clip(matches, 1e-9, clients)
        return np.asarray(betainc(matches, clients - matches + 1, 1 / g))


def _lanes_at(seeds: Seeds, channel: NDArray[np.intp]) -> NDArray[np.intp]:
    """One lane a seed: ``lanes(seeds, K)[i, channel[i]]``."""
    words = mix(seeds + (channel // 4 + 1).astype(np.uint64) * _GOLDEN)
    return (words >> (16 * (channel % 4)).astype(np.uint64)).astype(np.uint16).astype(np.intp)


# Gaussian noise


class CashChannels(Channels):
    """The paper's protocol in every channel: Gaussian noise on K n coordinates.

    Args:
        code: what items are sent with.
        epsilon, delta: the privacy of each client's report.
        channels: K, a power of two.
    """

    kind = np.float64

    def __init__(self, code: PolarCode, epsilon: float, channels: int, delta: float = 1e-4) -> None:
        super().__init__(code, epsilon, channels)
        self.delta = delta
        self.cells = code.n
        self.live = np.ones(code.n, dtype=bool)
        self.payload = np.dtype(("<f4", (self.channels, code.n)))
        # The signals of items in different channels are sqrt(2) apart, those in one channel as far
        # as codewords can be: 2 at most, which is taken where the code is too large to tell.
        within = 2.0 if code.k > MAX_ENUMERABLE else code.sensitivity
        apart = math.sqrt(2) if self.channels > 1 else 1.0
        self.noise = gaussian_sigma(epsilon, delta, max(within, apart))

    def reports(
        self, bits: ArrayLike, channel: ArrayLike, seeds: Seeds, rng: Generator
    ) -> NDArray[Any]:
        """``(B, K, n)`` numbers, in single precision."""
        own = np.asarray(channel)
        signal = self.signs(as_bits("bits", bits, self.code.k)) / math.sqrt(self.code.n)
        sent = self.noise * rng.standard_normal((len(own), self.channels, self.code.n))
        sent[np.arange(len(own)), np.maximum(own, 0)] += np.where(own[:, None] < 0, 0, signal)
        return sent.astype(np.float32)

    def add(self, sums: NDArray[Any], seeds: Seeds, sent: NDArray[Any]) -> None:
        sums += sent.sum(axis=0, dtype=np.float64)

    def draw(
        self, bits: Bits, channel: ArrayLike, counts: ArrayLike, clients: int, rng: Generator
    ) -> NDArray[Any]:
        """A sum of Gaussians is one Gaussian (Lemma 3)."""
        scale = self.noise * math.sqrt(clients)
        sums = normals((self.channels, self.cells), scale, rng)
        signals = self.signs(bits) / math.sqrt(self.code.n)
        np.add.at(sums, np.asarray(channel), np.asarray(counts)[:, None] * signals)
        return sums

    def means(self, sums: NDArray[Any], clients: int) -> Reals:
        return np.asarray(sums * (math.sqrt(self.code.n) / clients))

    def variance(self, frequency: Reals, clients: int) -> Reals:
        return np.full(np.shape(frequency), self.noise**2 / clients)

    def p_value(self, estimate: Reals, others: Reals, clients: int) -> Reals:
        return np.asarray(np.exp(log_ndtr(-np.asarray(estimate) * math.sqrt(clients) / self.noise)))
