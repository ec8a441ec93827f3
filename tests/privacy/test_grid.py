"""Safe noise against arithmetic with 90 digits, enumeration and Google's dp_accounting."""

import math
from itertools import product

import mpmath as mp
import numpy as np
import pytest
from strategies import PAPER, discrete_masses

from ldpcash import Cash, PolarCode, gaussian_sigma
from ldpcash.privacy.grid import Grid, grid_delta, safe_grid


@pytest.fixture(autouse=True)
def many_digits():
    with mp.workdps(90):
        yield


def convolution(scale, count):
    """Exact law of a sum of discrete Gaussians: probabilities of -reach to reach."""
    one = np.array(discrete_masses(scale, math.ceil(14 * scale)), dtype=object)
    law = one
    for _ in range(count - 1):
        law = np.convolve(law, one)
    return law


class TestProfile:
    @pytest.mark.parametrize(
        ("scale", "shift", "count"),
        [(4.0, 1, 3), (4.0, 6, 2), (5.3, 2, 1), (6.0, 4, 4), (4, 30, 4)],
    )
    def test_is_the_exact_delta(self, scale, shift, count, subtests):
        """Against the convolved law, as the largest P_a(E) - e^epsilon P_b(E) over all events E."""
        law = convolution(scale, count)
        move = shift * count
        other = np.concatenate([law[move:], [mp.mpf(0)] * min(move, len(law))])[: len(law)]
        for epsilon in (0.0, 0.1, 1.0, 5.0):
            with subtests.test(epsilon=epsilon):
                factor = mp.exp(epsilon)
                exact = mp.fsum(max(p - factor * q, 0) for p, q in zip(law, other, strict=True))
                bound = grid_delta(epsilon, scale, shift, count)
                if exact > 1e-25:  # smaller ones feel where the enumeration ends
                    assert exact <= bound <= exact * (1 + mp.mpf("1e-8"))

    def test_sums_over_coordinates_are_all_that_counts(self):
        """Both coordinates of reports in the plane, event by event."""
        scale, epsilon = 4.0, 0.7
        p = np.array([float(x) for x in discrete_masses(scale, 60)])
        a = np.outer(p, p)
        b = np.zeros_like(a)
        b[3:, :-3] = a[:-3, 3:]  # moved by +3 and by -3
        exact = np.maximum(a - np.exp(epsilon) * b, 0).sum()
        assert grid_delta(epsilon, scale, 3, 2) == pytest.approx(exact, rel=1e-8)

    def test_against_dp_accounting(self, subtests):
        """Theirs is for one coordinate, and rounds losses up to a multiple of 1e-5."""
        from dp_accounting.pld import privacy_loss_distribution as pld  # slow to import

        theirs = pld.from_discrete_gaussian_mechanism(
            20.0, sensitivity=9, value_discretization_interval=1e-5, truncation_bound=300
        )
        for epsilon in (0.1, 0.5, 1.0, 2.0):
            with subtests.test(epsilon=epsilon):
                delta = theirs.get_delta_for_epsilon(epsilon)
                assert grid_delta(epsilon, 20.0, 9, 1) == pytest.approx(delta, rel=1e-3)

    @pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
    def test_reports_of_both_kinds_mix(self, epsilon):
        """One coordinate that differs by 2 and two that differ by 1, against their exact law."""
        scale = 5.0
        wide = np.zeros(2 * len(discrete_masses(scale, 70)) - 1, dtype=object) + mp.mpf(0)
        wide[::2] = discrete_masses(scale, 70)
        law = np.convolve(wide, np.convolve(discrete_masses(scale, 70), discrete_masses(scale, 70)))
        other = np.concatenate([law[6:], [mp.mpf(0)] * 6])  # moved by 2 * 2 + 1 + 1
        exact = mp.fsum(max(p - mp.exp(epsilon) * q, 0) for p, q in zip(law, other, strict=True))
        assert exact <= grid_delta(epsilon, scale, 1, 6) <= exact * (1 + mp.mpf("1e-8"))
        grid = Grid(level=1, scale=scale, step=1.0, weight=1, apart=2)
        assert grid.delta(epsilon, 2) >= exact

    def test_fewer_coordinates_never_cost_more(self):
        deltas = [grid_delta(1.0, 100.0, 4, count) for count in range(1, 65)]
        assert deltas == sorted(deltas)

    def test_no_noise_and_nothing_but_noise(self):
        assert grid_delta(1.0, 4.0, 10_000, 1) == pytest.approx(1)
        assert grid_delta(50.0, 100.0, 1, 1) == 0
        for wrong in ({"shift": 0}, {"shift": 1.5}, {"count": 0}, {"epsilon": -1.0}):
            with pytest.raises(ValueError, match=f"^{next(iter(wrong))} = .*: needs a"):
                grid_delta(**{"epsilon": 1.0, "scale": 10.0, "shift": 1, "count": 4, **wrong})
        with pytest.raises(ValueError, match=r"scale = 3\.9: needs a number from 4"):
            grid_delta(1.0, 3.9, 1, 1)


def exact_delta(grid, epsilon):
    """With 90 digits: the larger of both cases of `Grid.delta`."""

    def case(shift, count):
        variance = count * mp.mpf(grid.scale) ** 2
        t = mp.mpf(epsilon) * mp.mpf(grid.scale) ** 2 / shift - mp.mpf(count * shift) / 2
        start, spread = int(mp.floor(t)) + 1, float(mp.sqrt(variance))
        stop = max(start, 0) + math.ceil(13 * spread)
        weight, total = mp.exp(-(mp.mpf(start) ** 2) / (2 * variance)), mp.mpf(0)
        ratio, step = mp.exp(-mp.mpf(2 * start + 1) / (2 * variance)), mp.exp(-1 / variance)
        loss = mp.exp(-(start - t) * shift / mp.mpf(grid.scale) ** 2)
        fall = mp.exp(-shift / mp.mpf(grid.scale) ** 2)
        for _ in range(start, stop):
            total += weight * (1 - loss)
            weight, ratio, loss = weight * ratio, ratio * step, loss * fall
        norm = mp.sqrt(2 * mp.pi * variance) * (1 + 2 * mp.exp(-2 * mp.pi**2 * variance))
        return total / norm

    return max(case(2 * grid.level, grid.weight), case(grid.level, grid.apart))


class TestGrid:
    def test_keeps_the_promise(self, subtests):
        settings = [(1e-4, 64, 64), (1e-9, 64, 48), (1e-2, 16, 8), (1e-4, 4, 1)]
        for epsilon, (delta, n, weight) in product([0.1, 0.5, 1.0, 2.0, 8.0, 20.0], settings):
            with subtests.test(epsilon=epsilon, delta=delta, n=n, weight=weight):
                sigma = gaussian_sigma(epsilon, delta, max(2 * math.sqrt(weight / n), 1.0))
                grid = safe_grid(epsilon, delta, sigma, n, weight)
                exact = exact_delta(grid, epsilon)
                assert exact <= mp.mpf(delta)
                assert exact == pytest.approx(delta, rel=1e-3)  # and wastes nothing
                assert 1 <= grid.scale * grid.step / sigma < 1 + 1e-4
                assert grid.level * grid.step == pytest.approx(1 / math.sqrt(n), rel=1e-15)
                assert grid.scale >= 64

    def test_less_noise_would_not_do(self):
        grid = Cash(PAPER, 1.0).grid
        less = Grid(grid.level, grid.scale * (1 - 1e-5), grid.step, grid.weight, grid.apart)
        assert exact_delta(less, 1.0) > mp.mpf("1e-4")

    def test_the_empty_client_counts_where_words_are_light(self):
        grid = Cash(PolarCode(64, [0]), 1.0).grid
        assert grid.weight == 1
        assert grid.delta(1.0) == grid_delta(1.0, grid.scale, grid.level, 64) <= 1e-4
