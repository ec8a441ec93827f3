"""The two protocols for a unique heavy hitter: the paper's, `Cash`, and the baseline, `Prot`.

N clients hold the same item of k bits, or nothing. Data flows one way::

    item bits -> codeword -> signal, +-1/sqrt(n)          every client; zero if it holds nothing
              -> report, a private version of the signal  every client    `reports`
              -> y, the mean over all N reports           the server      `ReportSum`
              -> LLR -> decoded bits -> (item, frequency) the server      `estimate`

`Cash` is Algorithm 1 of the paper: Gaussian noise on every coordinate, then soft list decoding.
`Prot` is PROT^PP-S-Hist_PP of Bassily and Smith (2015) as the paper's Remark 2 describes it: one
random coordinate under randomized response, then rounding and maximum-likelihood decoding.

To simulate a protocol nobody has to simulate its clients: `mean_reports` draws y itself, from the
law that it has when N clients send their reports. For `Prot` that is exact; for `Cash` it leaves
out the grid that clients' noise lies on (see `ldpcash.noise`); a test bounds the difference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ldpcash.checks import fraction, positive, real_number, whole_number
from ldpcash.decode import MLDecoder, SCLDecoder, sum_halves
from ldpcash.noise import Grid, discrete_gaussian, random_words, safe_grid
from ldpcash.normals import normals
from ldpcash.polar import Bits, PolarCode, as_bits
from ldpcash.polar import Reals as Reals  # other modules take it from here
from ldpcash.privacy import gaussian_sigma, keep_probability, keep_threshold, response_scale

Counts = NDArray[Any]  # integers of any kind

_MANY_TOSSES = 2048  # beyond it NumPy's binomial takes less time than tossing coins one by one
Decoder = SCLDecoder | MLDecoder


class Estimate(NamedTuple):
    """A succinct histogram of one item.

    >>> Estimate(np.array([1, 0], dtype=np.uint8), np.float64(0.7)).bits.tolist()
    [1, 0]
    """

    bits: Bits  #: (..., k): the decoded item
    frequency: Reals  #: (...): the estimated fraction of clients that hold it


class ReportSum:
    """A running sum of reports and their number, which is all that the server keeps.

    Sums from different machines add up, so reports can be collected anywhere and in any order.

    >>> here, there = ReportSum(2), ReportSum(2)
    >>> here.add([[1.0, 0.0], [3.0, 2.0]])
    >>> there.add([[2.0, 4.0]])
    >>> (here + there).mean
    array([2., 2.])
    """

    def __init__(self, n: int) -> None:
        self.total = np.zeros(whole_number("n", n, 1))
        self.count = 0

    def add(self, reports: ArrayLike) -> None:
        """Take in reports, ``(..., n)``."""
        array = np.asarray(reports, dtype=np.float64)
        if array.ndim == 0 or array.shape[-1] != self.total.size:
            raise ValueError(
                f"reports has shape {array.shape}: the last dimension must be {self.total.size}"
            )
        if not np.isfinite(array).all():
            raise ValueError("reports holds NaN or infinity: nothing of it was added")
        array = array.reshape(-1, self.total.size)
        self.total += array.sum(axis=0)
        self.count += len(array)

    def __add__(self, other: ReportSum) -> ReportSum:
        if other.total.size != self.total.size:
            raise ValueError(
                f"n = {other.total.size}: only sums of the same length, {self.total.size},"
                " can be added"
            )
        both = ReportSum(self.total.size)
        both.total = self.total + other.total
        both.count = self.count + other.count
        return both

    @property
    def mean(self) -> Reals:
        """y of step 7: the mean over all clients, those that hold nothing too."""
        if self.count == 0:
            raise ValueError("count = 0: the mean of no reports does not exist")
        return self.total / self.count


class Protocol(ABC):
    """What both protocols have in common, and all that simulations need to know of them."""

    epsilon: float  #: of each client's report

    def __init__(self, code: PolarCode, decoder: Decoder) -> None:
        if not hasattr(decoder, "decode"):
            raise ValueError(f"decoder = {decoder!r}: needs a decoder, such as an SCLDecoder")
        if decoder.code != code:
            raise ValueError(f"decoder = one for {decoder.code!r}: the code here is {code!r}")
        self.code = code
        self.decoder = decoder

    @abstractmethod
    def reports(self, bits: ArrayLike, holds: ArrayLike, rng: Generator | None = None) -> Reals:
        """What each of N clients sends: ``(N, k)`` items, ``(N,)`` whether held, to ``(N, n)``.

        Args:
            bits: the item of each client.
            holds: False for a client that holds nothing, whatever its item.
            rng: source of randomness in simulations. Real reports take that of the operating
                system, which is what None stands for.
        """

    @abstractmethod
    def mean_reports(
        self, bits: ArrayLike, frequency: float, clients: int, rng: Generator
    ) -> Reals:
        """Means of T independent collections of reports: ``(T, k)`` items to ``(T, n)``.

        Args:
            bits: the item of each collection.
            frequency: fraction of clients that hold it; see `holders` for how it is rounded.
            clients: N, the number of clients of each collection.
            rng: source of randomness.
        """

    @abstractmethod
    def estimate(self, y: ArrayLike) -> Estimate:
        """The server's side, steps 8 to 12: means ``(..., n)`` to items and frequencies."""

    def _means(self, y: ArrayLike) -> Reals:
        """``y`` as an array of floats, if it can be estimated from."""
        means = np.asarray(y)
        if means.ndim == 0 or means.shape[-1] != self.code.n:
            raise ValueError(
                f"y has shape {means.shape}: the last dimension must be n = {self.code.n}"
            )
        if means.dtype.kind not in "fiub":
            raise ValueError(f"y has type {means.dtype}: needs real numbers")
        if not np.isfinite(means).all():
            raise ValueError("y holds NaN or infinity: a mean of reports is finite")
        return means if means.dtype == np.float32 else means.astype(np.float64, copy=False)

    def _clients(
        self, bits: ArrayLike, holds: ArrayLike
    ) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
        """The signs of each client's signal, as if it held its item, and whether it does."""
        items, held = self._items(bits), np.asarray(holds)
        if held.shape != items.shape[:1] or held.dtype != np.bool_:
            raise ValueError(
                f"holds has shape {held.shape} and type {held.dtype}:"
                f" needs True or False for each of {len(items)} clients"
            )
        return self._signs(items), held

    def _items(self, bits: ArrayLike) -> Bits:
        items = as_bits("bits", bits, self.code.k)
        if items.ndim != 2:
            raise ValueError(f"bits has shape {items.shape}: needs a row of k bits for each item")
        return items

    def _signs(self, bits: Bits) -> NDArray[np.int8]:
        """Encode (step 2): ``(..., k)`` bits to ``(..., n)``, a 1 as +1 and a 0 as -1."""
        return _plus_or_minus(self.code.encode(bits))

    def _correlation(self, bits: Bits, y: Reals) -> Reals:
        """<x, y> with the signal x of each item: the frequency estimate (step 11)."""
        return sum_halves(np.moveaxis(self._signs(bits) * y, -1, 0)) / np.sqrt(self.code.n)


def holders(frequency: float, clients: int) -> int:
    """How many of N clients hold the item: the whole number nearest to frequency * N.

    A fraction of a client cannot hold an item, so the true frequency of a simulation is
    ``holders(f, N) / N``. It differs from f by at most 1 / (2 N).

    >>> holders(0.7, 1000), holders(1 / 3, 1000)
    (700, 333)
    """
    frequency = real_number("frequency", frequency, 0, 1)
    return round(frequency * whole_number("clients", clients, 1, 2**53))


def spread_evenly(counts: Counts, levels: int, rng: Generator) -> Counts:
    """Send each client to one of 2**levels cells, all alike: ``(T,)`` counts to ``(cells, T)``.

    A tree of fair halvings: half of the clients of a cell, drawn by tossing a coin for each, move
    to its first half.

    >>> spread_evenly(np.array([1000, 3]), 2, np.random.default_rng(1)).sum(axis=0).tolist()
    [1000, 3]
    """
    smallest = np.min_scalar_type(-1 - int(counts.max(initial=0)))  # small integers are fast
    cells = counts[None].astype(smallest)
    for _ in range(levels):
        halves = np.empty((len(cells), 2, len(counts)), cells.dtype)
        halves[:, 0] = fair_heads(cells, rng)
        np.subtract(cells, halves[:, 0], out=halves[:, 1])
        cells = halves.reshape(2 * len(cells), len(counts))
    return cells


def fair_heads(tosses: Counts, rng: Generator) -> Counts:
    """How many of each number of tosses of a fair coin fall heads: popcounts of random words.

    >>> bool((fair_heads(np.array([0, 1, 70]), np.random.default_rng(1)) <= [0, 1, 70]).all())
    True
    """
    most = int(tosses.max(initial=0))
    if most > _MANY_TOSSES:
        return np.asarray(rng.binomial(tosses, 0.5))
    sure = int(tosses.min(initial=most)) // 64  # whole words that every count fills
    heads = np.bitwise_count(random_words((sure, *tosses.shape), 64, rng))
    heads = heads.sum(axis=0, dtype=tosses.dtype)
    width = next((bits for bits in (8, 16, 32) if most - 64 * sure <= bits), 64)
    for done in range(64 * sure, most, width):
        words = random_words(tosses.shape, width, rng)
        left = tosses if most <= width else np.clip(tosses, done, done + width) - done
        words >>= np.subtract(width, left, dtype=words.dtype, casting="unsafe")
        heads += np.bitwise_count(words)
    return heads


def _plus_or_minus(ones: NDArray[np.bool_] | Bits) -> NDArray[np.int8]:
    """1 or True to +1, 0 or False to -1."""
    return 2 * ones.view(np.int8) - 1


class Cash(Protocol):
    """The paper's protocol: Gaussian noise on the whole codeword, soft list decoding.

    The noise follows from the code's own sensitivity. A client that holds nothing sends noise
    alone; its distance to any codeword is 1, and that would dominate only for a code whose words
    all weigh less than n / 4. (A code that uses all its positions has an average weight of n / 2.)

    Reports lie on a grid, so that floating point reveals nothing: their noise is the *discrete*
    Gaussian. `mean_reports` draws from the continuous law, which is the same but for the grid and
    about one part in 10^5 of the noise.

    Args:
        code: the code that items are sent with.
        epsilon, delta: the privacy of each client's report.
        decoder: an `SCLDecoder` with a list of 8 unless given.

    >>> rng = np.random.default_rng(1)
    >>> cash = Cash(PolarCode.construct(64, 8), epsilon=2.0)
    >>> y = cash.mean_reports([[1, 0, 1, 1, 0, 0, 1, 0]], frequency=0.7, clients=1000, rng=rng)
    >>> bits, frequency = cash.estimate(y)
    >>> bits[0], round(float(frequency[0]), 2)
    (array([1, 0, 1, 1, 0, 0, 1, 0], dtype=uint8), 0.87)
    """

    def __init__(
        self,
        code: PolarCode,
        epsilon: float,
        delta: float = 1e-4,
        decoder: Decoder | None = None,
    ) -> None:
        super().__init__(code, SCLDecoder(code, 8) if decoder is None else decoder)
        self.epsilon = positive("epsilon", epsilon)
        self.delta = fraction("delta", delta)
        self.sigma = gaussian_sigma(self.epsilon, self.delta, max(code.sensitivity, 1.0))

    @cached_property
    def grid(self) -> Grid:
        """Where reports lie, and the noise that keeps the promise there."""
        weight = round(self.code.n * self.code.sensitivity**2 / 4)
        return safe_grid(self.epsilon, self.delta, self.sigma, self.code.n, weight)

    def reports(self, bits: ArrayLike, holds: ArrayLike, rng: Generator | None = None) -> Reals:
        """Steps 2 to 4: signal or nothing, plus noise in every coordinate.

        Both are whole numbers of steps until the end, see `ldpcash.noise`.

        >>> cash = Cash(PolarCode.construct(64, 8), epsilon=2.0)
        >>> cash.reports([[1, 0, 1, 1, 0, 0, 1, 0]] * 3, [True, True, False]).shape
        (3, 64)
        """
        signs, held = self._clients(bits, holds)
        signs[~held] = 0
        steps = discrete_gaussian(self.grid.scale, signs.shape, rng)
        steps += np.multiply(signs, self.grid.level, dtype=steps.dtype)
        return steps * self.grid.step

    def mean_reports(
        self, bits: ArrayLike, frequency: float, clients: int, rng: Generator
    ) -> Reals:
        """A mean of N Gaussians is one Gaussian (Lemma 3): f x + N(0, sigma^2 / N).

        Noise is as likely as its negative, so it can be added before the signs are put on.
        """
        signs = self._signs(self._items(bits)).T
        held, clients = holders(frequency, clients), int(clients)
        level = held / clients / np.sqrt(self.code.n)
        y = normals(signs.shape, self.sigma / np.sqrt(clients), rng)
        y += level
        y *= signs
        return y.T

    def estimate(self, y: ArrayLike) -> Estimate:
        """Steps 8 to 12. Bit 1 was sent as a positive number, so the LLR is *minus* 2 y / sigma^2;
        the paper leaves the sign to the reader."""
        means = self._means(y)
        bits = self.decoder.decode(means * (-2 / self.sigma**2))
        return Estimate(bits, self._correlation(bits, means))


class Prot(Protocol):
    """The baseline: one coordinate of the codeword under randomized response.

    A client draws a coordinate j uniformly and sends c_eps * n * x_j there, with the sign kept with
    probability e^eps / (e^eps + 1) and flipped otherwise, and zeros elsewhere. One that holds
    nothing sends c_eps * sqrt(n) with a random sign. The server rounds the mean to signs, decodes
    those, and estimates the frequency from the unrounded mean. That is pure epsilon privacy.

    The paper's text leaves room for other readings, and each is a switch.

    Args:
        code: the code that items are sent with.
        epsilon: the privacy of each client's report.
        decoder: an `MLDecoder` unless given.
        empty: what a client that holds nothing sends. "uniform", a random sign; "positive", what it
            would send if every entry of its codeword were +1 / sqrt(n).
        decision: "hard" rounds the mean before decoding, 0 to +; "soft" decodes the mean itself.
        frequency_from: "mean" or "rounded", what the frequency is estimated from.

    >>> rng = np.random.default_rng(1)
    >>> prot = Prot(PolarCode.construct(64, 8), epsilon=2.0)
    >>> np.count_nonzero(prot.reports([[1, 0, 1, 1, 0, 0, 1, 0]] * 5, [True] * 5, rng), axis=1)
    array([1, 1, 1, 1, 1])
    >>> y = prot.mean_reports([[1, 0, 1, 1, 0, 0, 1, 0]], frequency=0.7, clients=1000, rng=rng)
    >>> bits, frequency = prot.estimate(y)
    >>> bits[0], round(float(frequency[0]), 2)
    (array([1, 0, 1, 1, 0, 0, 1, 0], dtype=uint8), 0.65)
    """

    def __init__(
        self,
        code: PolarCode,
        epsilon: float,
        decoder: Decoder | None = None,
        empty: Literal["uniform", "positive"] = "uniform",
        decision: Literal["hard", "soft"] = "hard",
        frequency_from: Literal["mean", "rounded"] = "mean",
    ) -> None:
        super().__init__(code, MLDecoder(code) if decoder is None else decoder)
        for name, value, allowed in (
            ("empty", empty, ("uniform", "positive")),
            ("decision", decision, ("hard", "soft")),
            ("frequency_from", frequency_from, ("mean", "rounded")),
        ):
            if value not in allowed:
                raise ValueError(f"{name} = {value!r}: choose one of {', '.join(allowed)}")
        self.epsilon = positive("epsilon", epsilon)
        self.empty = empty
        self.decision = decision
        self.frequency_from = frequency_from
        self.keep = keep_probability(self.epsilon)
        self._threshold = np.uint64(keep_threshold(self.epsilon))
        self.amplitude = response_scale(self.epsilon) * np.sqrt(code.n)

    def reports(self, bits: ArrayLike, holds: ArrayLike, rng: Generator | None = None) -> Reals:
        """One entry of +-c_eps sqrt(n) a client, zeros elsewhere.

        Every choice is a comparison of random words with whole numbers, so that all probabilities
        are exact.
        """
        signs, held = self._clients(bits, holds)
        clients = len(signs)
        client = np.arange(clients)
        coordinate = random_words((clients,), 32, rng) % self.code.n  # a power of two
        sign = signs[client, coordinate]
        if self.empty == "positive":
            sign[~held] = 1
        sign[random_words((clients,), 64, rng) >= self._threshold] *= -1
        if self.empty == "uniform":
            fair = random_words((clients,), 8, rng) % 2 == 0
            sign[~held] = _plus_or_minus(fair)[~held]
        sent = np.zeros(signs.shape)
        sent[client, coordinate] = self.amplitude * sign
        return sent

    def mean_reports(
        self, bits: ArrayLike, frequency: float, clients: int, rng: Generator
    ) -> Reals:
        """Counts of positive and negative entries at each coordinate, drawn without clients.

        Keeping a sign with probability p is the same as telling the truth with probability
        2 p - 1 and sending a random sign otherwise. So one binomial tells how many clients are
        truthful. These spread evenly over the n coordinates, and all others over n coordinates
        times two signs, whatever they hold.
        """
        signs = self._signs(self._items(bits)).T
        n, trials = signs.shape
        held, clients = holders(frequency, clients), int(clients)
        levels = n.bit_length() - 1
        whole = np.min_scalar_type(-2 * clients)  # small integers are fast
        truthful = self._truthful(held, trials, rng)
        random = clients - truthful
        total = spread_evenly(truthful, levels, rng).astype(whole)
        total *= signs
        if self.empty == "positive":
            plus = self._truthful(clients - held, trials, rng)
            random = random - plus
            total += spread_evenly(plus, levels, rng).astype(whole)
        either = spread_evenly(random, levels, rng).astype(whole)
        total += 2 * fair_heads(either, rng) - either  # heads send +, tails -
        return (self.amplitude / clients * total).T

    def _truthful(self, clients: int, trials: int, rng: Generator) -> Counts:
        return np.asarray(rng.binomial(clients, 2 * self.keep - 1, size=trials))

    def estimate(self, y: ArrayLike) -> Estimate:
        """Round (or not), decode, correlate."""
        means = self._means(y)
        rounds = self.decision == "hard" or self.frequency_from == "rounded"
        rounded = _plus_or_minus(means >= 0) / np.sqrt(self.code.n) if rounds else means
        bits = self.decoder.decode(-(rounded if self.decision == "hard" else means))
        source = rounded if self.frequency_from == "rounded" else means
        return Estimate(bits, self._correlation(bits, source))
