"""Constructions against Arikan's recursion, adaptive quadrature and Reed-Muller codes."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from ldpcash import PolarCode
from ldpcash.codec.construction import reliability


def test_polarization_weight_of_the_paper_s_code():
    code = PolarCode.construct(64, 8)
    assert code.info.tolist() == [31, 47, 55, 59, 60, 61, 62, 63]
    assert code.weight_distribution() == {0: 1, 16: 4, 32: 246, 48: 4, 64: 1}


@pytest.mark.parametrize("n", [128, 256])
def test_longer_codes_of_eight_bits_repeat_the_one_of_64(n):
    short, long = PolarCode.construct(64, 8), PolarCode.construct(n, 8)
    repeated = np.tile(short.codebook(), n // 64)
    np.testing.assert_array_equal(long.codebook(), repeated)


def test_numpy_integers():
    code = PolarCode.construct(np.int64(64), np.int64(8))
    assert repr(code) == repr(PolarCode.construct(64, 8))


def test_polarization_weight_has_no_ties():
    assert len(np.unique(reliability(4096))) == 4096


@pytest.mark.parametrize(("r", "m"), [(1, 3), (2, 5), (1, 8), (3, 7)])
def test_the_reed_muller_rule_gives_reed_muller_codes(r, m):
    heavy = [i for i in range(2**m) if i.bit_count() >= m - r]
    code = PolarCode.construct(2**m, len(heavy), "rm")
    assert code.info.tolist() == heavy


def test_bhattacharyya_on_an_erasure_channel():
    """Z of the eight channels from BEC(1/2), by the recursion of Arikan (2009)."""
    sigma = (1 / (2 * np.log(2))) ** 0.5  # which makes Z = 1/2
    z = [0.99609375, 0.87890625, 0.80859375, 0.31640625]
    z += [0.68359375, 0.19140625, 0.12109375, 0.00390625]
    odds = reliability(8, "bhattacharyya", sigma)
    np.testing.assert_allclose(1 / (1 + np.exp(odds)), z, rtol=1e-12)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
def test_gaussian_approximation_by_adaptive_quadrature(sigma):
    def expected_tanh(mean):
        def integrand(z):
            density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
            return np.tanh((mean + np.sqrt(2 * mean) * z) / 2) * density

        return quad(integrand, -12, 12, epsabs=1e-13, limit=200, points=[-np.sqrt(mean / 2)])[0]

    def minus(mean):
        target = expected_tanh(mean) ** 2
        return brentq(lambda x: expected_tanh(x) - target, 1e-9, mean, xtol=1e-13)

    means = [2 / sigma**2]
    for _ in range(2):
        means = [new for mean in means for new in (minus(mean), 2 * mean)]
    ours = np.exp(reliability(4, "ga", sigma))
    np.testing.assert_allclose(ours, means, rtol=1e-4)


@pytest.mark.parametrize("method", ["ga", "bhattacharyya"])
def test_reliabilities_do_not_run_together(method):
    """Nor over- or underflow, on channels from hopeless to nearly perfect."""
    assert len(np.unique(reliability(4096, method))) > 4000
    for sigma in (1e-3, 1e3):
        assert np.isfinite(reliability(4096, method, sigma)).all()


@pytest.mark.parametrize("method", ["pw", "ga", "bhattacharyya", "rm"])
def test_better_channels_come_first(method):
    """Replacing a minus by a plus never makes a channel worse."""
    values = reliability(256, method)
    for index in range(256):
        for bit in range(8):
            assert values[index | 1 << bit] >= values[index]


def test_method():
    with pytest.raises(ValueError, match=r"method = 'magic'.*pw, ga, bhattacharyya, rm"):
        PolarCode.construct(8, 4, "magic")


def test_design_sigma(subtests):
    for sigma in (0, -1, np.nan, np.inf, 1e-4, 1e4):
        with (
            subtests.test(sigma=sigma),
            pytest.raises(ValueError, match=r"design_sigma = .*from 0.001 to 1000"),
        ):
            PolarCode.construct(8, 4, "ga", design_sigma=sigma)


@pytest.mark.parametrize("method", ["pw", "rm"])
def test_design_sigma_where_there_is_no_channel(method):
    with pytest.raises(ValueError, match="no channel"):
        PolarCode.construct(8, 4, method, design_sigma=1.0)
