"""`Prot`, the baseline: PROT^PP-S-Hist_PP of Bassily and Smith (2015), as Remark 2 describes it.

One random coordinate under randomized response, then rounding and maximum-likelihood decoding.
`reports` is the client's side, `estimate` the server's, as `ldpcash.protocols.protocol` says, and
the law of `mean_reports` is exact.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Counts, Reals, as_items, plus_or_minus
from ldpcash.base.checks import one_of, positive
from ldpcash.base.randomness import random_words
from ldpcash.codec.ml import MLDecoder
from ldpcash.codec.polar import PolarCode
from ldpcash.privacy.calibration import keep_probability, keep_threshold, response_scale
from ldpcash.protocols.laws import fair_heads, holders, spread_evenly
from ldpcash.protocols.protocol import Decoder, Estimate, Protocol


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
        self.epsilon = positive("epsilon", epsilon)
        self.empty = one_of("empty", empty, ("uniform", "positive"))
        self.decision = one_of("decision", decision, ("hard", "soft"))
        self.frequency_from = one_of("frequency_from", frequency_from, ("mean", "rounded"))
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
            sign[~held] = plus_or_minus(fair)[~held]
        sent = np.zeros(signs.shape)
        sent[client, coordinate] = self.amplitude * sign
        return sent

    def honest(self, reports: Reals) -> NDArray[np.bool_]:
        """Whether each report, ``(N, n)``, is one entry of the amplitude: every honest one is.

        In single precision, too.

        >>> prot = Prot(PolarCode.construct(2, 1), 1.0)
        >>> prot.honest(np.array([[prot.amplitude, 0], [prot.amplitude] * 2, [1, 0]])).tolist()
        [True, False, False]
        """
        with np.errstate(invalid="ignore"):  # cheats send what they like
            size = np.abs(reports) / self.amplitude
            allowed = ((np.abs(size - 1) <= 1e-6) | (size == 0)).all(axis=1)
        return np.asarray(allowed & (np.count_nonzero(size, axis=1) == 1))

    def mean_reports(
        self, bits: ArrayLike, frequency: float, clients: int, rng: Generator
    ) -> Reals:
        """Counts of positive and negative entries at each coordinate, drawn without clients.

        Keeping a sign with probability p is the same as telling the truth with probability
        2 p - 1 and sending a random sign otherwise. So one binomial tells how many clients are
        truthful. These spread evenly over the n coordinates, and all others over n coordinates
        times two signs, whatever they hold.
        """
        signs = self.code.signs(as_items(bits, self.code.k)).T
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
        rounded = plus_or_minus(means >= 0) / np.sqrt(self.code.n) if rounds else means
        bits = self.decoder.decode(-(rounded if self.decision == "hard" else means))
        source = rounded if self.frequency_from == "rounded" else means
        return Estimate(bits, self._correlation(bits, source))
