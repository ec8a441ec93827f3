"""`Cash`, the paper's protocol (Algorithm 1): Gaussian noise on every coordinate, soft decoding.

`reports` is the client's side, `estimate` the server's, as `ldpcash.protocols.protocol` says.
`mean_reports` leaves out the grid that clients' noise lies on (see `ldpcash.privacy.grid`); a test
bounds the difference.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Reals, as_items
from ldpcash.base.checks import fraction, positive
from ldpcash.codec.polar import PolarCode
from ldpcash.codec.scl import SCLDecoder
from ldpcash.privacy.calibration import gaussian_sigma
from ldpcash.privacy.discrete import discrete_gaussian
from ldpcash.privacy.grid import Grid, safe_grid
from ldpcash.protocols.laws import holders
from ldpcash.protocols.normals import normals
from ldpcash.protocols.protocol import Decoder, Estimate, Protocol


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
        return safe_grid(self.epsilon, self.delta, self.sigma, self.code.n, self.code.max_weight)

    @cached_property
    def limit(self) -> float:
        """The norm that one honest report in a million exceeds."""
        return self.grid.largest_norm(self.code.n)

    def honest(self, reports: Reals) -> NDArray[np.bool_]:
        """Whether each report, ``(N, n)``, has at most the norm `limit`; NaN has none.

        >>> cash = Cash(PolarCode.construct(64, 8), epsilon=2.0)
        >>> cash.honest(np.array([[0.0] * 64, [100.0] * 64])).tolist()
        [True, False]
        """
        with np.errstate(over="ignore", invalid="ignore"):  # cheats send what they like
            return np.asarray(np.square(reports).sum(axis=1) <= self.limit**2)

    def reports(self, bits: ArrayLike, holds: ArrayLike, rng: Generator | None = None) -> Reals:
        """Steps 2 to 4: signal or nothing, plus noise in every coordinate.

        Both are whole numbers of steps until the end, see `ldpcash.privacy.grid`.

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
        signs = self.code.signs(as_items(bits, self.code.k)).T
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
