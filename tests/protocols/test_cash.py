"""`Cash`: clients against the fast law, and both against closed forms.

Every statistical test has a false-alarm rate of at most 1e-6; that of the operating system's
randomness is the only one without a fixed seed.
"""

import math
from itertools import product

import numpy as np
import pytest
import scipy
from strategies import FALSE_ALARM, ITEM, PAPER, client_means

from ldpcash import MLDecoder, PolarCode, SCLDecoder, gaussian_sigma
from ldpcash.protocols.cash import Cash


def test_noise_follows_from_the_code_s_own_sensitivity():
    assert Cash(PAPER, 1.0).sigma == gaussian_sigma(1.0, 1e-4, 2.0)
    lighter = PolarCode(64, PAPER.info[:-1])
    assert Cash(lighter, 1.0, 1e-6).sigma == gaussian_sigma(1.0, 1e-6, np.sqrt(3))


def test_an_empty_client_never_dominates(subtests):
    """It is at distance 1 of every signal; two signals are at least sqrt(2) apart somewhere."""
    methods = ["pw", "ga", "bhattacharyya", "rm"]
    for n, method, k in product([16, 64, 256], methods, range(2, 12)):
        with subtests.test(n=n, method=method, k=k):
            code = PolarCode.construct(n, k, method)
            for subcode in (code, PolarCode(n, code.info[:-1])):
                if subcode.codebook().any(axis=0).all():  # every position is used
                    assert subcode.sensitivity >= np.sqrt(2)


def test_but_where_it_does_it_counts():
    feeble = PolarCode(64, [0])  # one codeword, of weight 1
    assert feeble.sensitivity == 0.25
    assert Cash(feeble, 1.0).sigma == gaussian_sigma(1.0, 1e-4, 1.0)


@pytest.mark.parametrize("way", ["clients", "law"])
def test_the_mean_is_gaussian_with_the_right_mean_and_variance(way):
    rng = np.random.default_rng(5)
    cash = Cash(PAPER, 2.0)
    if way == "clients":
        y = client_means(cash, ITEM, 12, 20, 2000, rng)
    else:
        y = cash.mean_reports(np.tile(ITEM, (2000, 1)), 0.6, 20, rng)
    x = (2.0 * PAPER.encode(ITEM) - 1) / 8
    residual = (y - 0.6 * x) * np.sqrt(20) / cash.sigma
    assert scipy.stats.kstest(residual.ravel(), "norm").pvalue > FALSE_ALARM
    # Coordinates are independent: so is every combination of them, normalized.
    mixed = residual @ scipy.stats.ortho_group.rvs(64, random_state=1)
    assert scipy.stats.kstest(mixed.ravel(), "norm").pvalue > FALSE_ALARM
    # Along the signal, where a wrong number of holders would show, the mean is 0.
    along = residual @ x
    assert abs(along.mean()) * np.sqrt(2000) < scipy.stats.norm.isf(FALSE_ALARM / 2)


def test_estimate_follows_algorithm_1():
    cash = Cash(PAPER, 2.0)
    y = cash.mean_reports(np.tile(ITEM, (7, 1)), 0.7, 1000, np.random.default_rng(2))
    bits, frequency = cash.estimate(y)
    np.testing.assert_array_equal(bits, SCLDecoder(PAPER, 8).decode(-y))
    x = (2.0 * PAPER.encode(bits) - 1) / 8
    np.testing.assert_allclose(frequency, (x * y).sum(axis=1), rtol=1e-12)


def test_default_and_given_decoder():
    assert Cash(PAPER, 1.0).decoder.list_size == 8
    decoder = MLDecoder(PAPER)
    assert Cash(PAPER, 1.0, decoder=decoder).decoder is decoder


def test_the_noise_does_not_depend_on_the_type_of_n(subtests):
    cash = Cash(PAPER, 1.0)
    for kind in (np.int8, np.uint8, np.int32, float):
        with subtests.test(kind=kind):
            drawn = [
                cash.mean_reports([ITEM], 0.5, clients, np.random.default_rng(1))
                for clients in (100, kind(100))
            ]
            np.testing.assert_array_equal(*drawn)


class TestReports:
    @pytest.mark.parametrize("seed", [None, 1])
    def test_lie_on_whole_steps(self, seed):
        rng = None if seed is None else np.random.default_rng(seed)
        cash = Cash(PAPER, 1.0)
        sent = cash.reports(np.tile(ITEM, (200, 1)), np.arange(200) % 2 == 0, rng)
        steps = sent / cash.grid.step
        assert (steps == np.rint(steps)).all()
        assert 0.9 < (steps % 2).mean() * 2 < 1.1  # all of them: 10 standard deviations

    def test_signals_are_on_the_grid_with_noise_of_its_scale(self):
        cash = Cash(PAPER, 4.0)
        item = np.tile(ITEM, (20_000, 1))
        rng = np.random.default_rng(2)
        limit = scipy.stats.norm.isf(FALSE_ALARM / 128)
        for holds, x in ((True, (2.0 * PAPER.encode(ITEM) - 1) / 8), (False, np.zeros(64))):
            sent = cash.reports(item, np.full(20_000, holds), rng)
            assert (abs(sent.mean(axis=0) - x) < limit * cash.sigma / math.sqrt(20_000)).all()
            variance = ((sent - x) ** 2).mean()
            assert abs(variance / cash.sigma**2 - 1) < limit * math.sqrt(2 / sent.size)

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 20.0])
    def test_simulators_draw_nearly_the_same_law(self, epsilon):
        """Continuous noise, rounded to the grid, against the noise of a client.

        Their total variation distance is below 3e-5 a coordinate, and so below 2e-3 for a whole
        report: one who sees simulated reports is right about which they are at most 0.1 % more
        often than by guessing. It falls with the square of the step. Their variances agree to 2e-5.
        """
        cash = Cash(PAPER, epsilon)
        grid = cash.grid
        reach = round(12 * grid.scale)
        k = np.arange(-reach, reach + 1)
        client = np.exp(-(k**2) / (2 * grid.scale**2))
        client /= client.sum()
        edges = scipy.stats.norm.cdf((np.arange(-reach, reach + 2) - 0.5) * grid.step / cash.sigma)
        distance = 0.5 * abs(client - np.diff(edges)).sum()
        assert distance < 3e-5
        assert abs((client * k**2).sum() * grid.step**2 / cash.sigma**2 - 1) < 2e-5

    def test_too_much_noise_for_the_table(self):
        cash = Cash(PAPER, 1e-6, 1e-12)
        with pytest.raises(ValueError, match=r"sigma = .*: more than 8192, .* larger epsilon"):
            cash.reports([ITEM], [True])
