"""Clients with a mistake in them, to show that audit and tests find it. Never use them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from ldpcash.base.arrays import Counts, Reals, as_holds
from ldpcash.beyond.audit import Randomizer
from ldpcash.privacy.calibration import gaussian_sigma
from ldpcash.privacy.grid import Grid, safe_grid
from ldpcash.protocols.blank import Blank
from ldpcash.protocols.cash import Cash
from ldpcash.protocols.prot import Prot


class FloatNoise(Cash):
    """Adds noise in floating point, as one would at first: the law is right, and bits leak.

    >>> from ldpcash import PolarCode
    >>> from ldpcash.beyond.audit import ruled_out
    >>> leaky = FloatNoise(PolarCode.construct(64, 8), 1.0)
    >>> reports = leaky.reports(np.ones((100, 8)), np.ones(100, bool), np.random.default_rng(1))
    >>> bool(ruled_out(reports).any())
    True
    """

    def reports(self, bits: ArrayLike, holds: ArrayLike, rng: Generator | None = None) -> Reals:
        signs, held = self._clients(bits, holds)
        signals = signs * held[:, None] / np.sqrt(self.code.n)
        noise = np.random.default_rng(rng).standard_normal(signals.shape)
        return np.asarray(signals + self.sigma * noise)


class HalfSensitivity(Cash):
    """Takes the sensitivity for 1, the energy of a signal, and not for the 2 between signals.

    >>> from ldpcash import PolarCode
    >>> code = PolarCode.construct(64, 8)
    >>> wrong, right = HalfSensitivity(code, 1.0).grid, Cash(code, 1.0).grid
    >>> round(wrong.scale * wrong.step / (right.scale * right.step), 2)
    0.5
    """

    @cached_property
    def grid(self) -> Grid:
        sigma = gaussian_sigma(self.epsilon, self.delta, 1.0)
        return safe_grid(self.epsilon, self.delta, sigma, self.code.n, self.code.n // 4)


class SwappedCoin(Prot):
    """Keeps the sign as often as it should be flipped. What it sends is as private, but wrong.

    >>> from ldpcash import PolarCode
    >>> from ldpcash.beyond.audit import bias
    >>> swapped = SwappedCoin(PolarCode.construct(64, 8), 1.0)
    >>> bias(swapped, np.ones(8, np.uint8), 10_000, np.random.default_rng(1)) < -50
    True
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._threshold = np.uint64(2**64 - int(self._threshold))


class LazyCoin(Prot):
    """Draws another coin where it should flip the sign, and so flips half as often.

    >>> from ldpcash import PolarCode
    >>> from ldpcash.beyond.audit import audit, farthest_items, randomizer_of
    >>> code, rng = PolarCode.construct(64, 8), np.random.default_rng(1)
    >>> send = randomizer_of(LazyCoin(code, 1.0))
    >>> audit(send, *farthest_items(code), 1.0, 0.0, 20_000, rng).refuted
    True
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._threshold = np.uint64((2**64 + int(self._threshold)) // 2)


class SilentCrowd(Blank):
    """Hands in a blank whenever it holds nothing, as if that were all that a blank is for.

    >>> from ldpcash.beyond.audit import audit, randomizer_of
    >>> from ldpcash.codec.hadamard import hadamard_code
    >>> send, rng = randomizer_of(SilentCrowd(hadamard_code(4), 2.0)), np.random.default_rng(1)
    >>> audit(send, np.ones(4, np.uint8), None, 2.0, 0.0, 20_000, rng).refuted
    True
    """

    def messages(
        self, bits: ArrayLike, holds: ArrayLike, rng: Generator | None = None
    ) -> tuple[Counts, Counts, Counts]:
        view, denies, value = super().messages(bits, holds, rng)
        return view, np.where(as_holds(holds, len(view)), denies, 1), value


def reused_noise(cash: Cash) -> Randomizer:
    """A client and a neighbour without an item, who draw the same noise: ``(count, 2 n)``.

    >>> from ldpcash import PolarCode
    >>> send = reused_noise(Cash(PolarCode.construct(64, 8), 1.0))
    >>> both = send(np.ones(8, np.uint8), 1, np.random.default_rng(1))
    >>> np.unique(abs(both[:, :64] - both[:, 64:]).round(9))  # the signal, in plain sight
    array([0.125])
    """

    def randomizer(item: Any, count: int, rng: Generator) -> Reals:
        bits = np.zeros((count, cash.code.k), dtype=np.uint8)
        neighbour = cash.reports(bits, np.zeros(count, dtype=bool), rng)
        return np.hstack([neighbour + cash.code.signals(item), neighbour])

    return randomizer
