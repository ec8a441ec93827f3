"""The fast normal numbers, held against the closed form of their density."""

import numpy as np
import pytest
import scipy
from scipy.special import ndtr

from ldpcash.protocols import normals as module
from ldpcash.protocols.normals import normals

FALSE_ALARM = 1e-7


def draw(size, seed, scale=1.0):
    return normals((size,), scale, np.random.Generator(np.random.SFC64(seed)))


class TestTables:
    def test_layers_and_the_rest_add_up_to_the_normal_density(self):
        """At any x: shares of the layers over it, plus what the boxes hold up to the curve."""
        x = np.linspace(0.0005, module._WIDTHS[0], 4001)[:-1]
        whole = np.sqrt(np.pi / 2)
        inside = x[:, None] < module._WIDTHS
        layers = (inside / module._WIDTHS).sum(axis=1) * whole / 1024
        box = inside.sum(axis=1) - 1
        left, width = module._BOX_LEFT[box], module._BOX_WIDTH[box]
        assert (left <= x).all()
        assert (x <= left + width).all()
        bottom, height = module._BOX_BOTTOM[box], module._BOX_HEIGHT[box]
        np.testing.assert_allclose(layers, bottom, rtol=1e-12)
        curve = np.exp(-x * x / 2)
        assert (bottom <= curve).all()
        assert (curve <= bottom + height + 1e-12).all()

    def test_layers_fill_all_shares_but_three(self):
        assert len(module._WIDTHS) == 1021
        assert (np.diff(module._WIDTHS) < 0).all()

    def test_what_is_left_has_the_area_that_the_layers_leave(self):
        """The boxes' parts under the curve and the tail, integrated, make three shares."""
        corners = 0.0
        for left, width, bottom in zip(
            module._BOX_LEFT[:-1], module._BOX_WIDTH[:-1], module._BOX_BOTTOM[:-1], strict=True
        ):
            ends = ndtr(left + width) - ndtr(left)
            corners += ends * np.sqrt(2 * np.pi) - width * bottom
        tail = ndtr(-module._WIDTHS[0]) * np.sqrt(2 * np.pi)
        assert corners + tail == pytest.approx(3 * np.sqrt(np.pi / 2) / 1024, rel=1e-9)


class TestLaw:
    @pytest.mark.parametrize("scale", [1.0, 0.2])
    def test_histogram(self, scale):
        """20 million numbers in bins of 1/64; false alarms: 1e-7."""
        edges = np.arange(-5.5, 5.5 + 1 / 64, 1 / 64)
        x = draw(20_000_000, 5, scale) / scale
        seen = np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1)
        mean = len(x) * np.diff(ndtr(np.concatenate([[-np.inf], edges, [np.inf]])))
        enough = mean > 20
        chi_square = ((seen - mean)[enough] ** 2 / mean[enough]).sum()
        assert chi_square < scipy.stats.chi2.isf(FALSE_ALARM, enough.sum() - 1)

    def test_the_rest_alone(self):
        """Its law is what the layers leave of the normal one; false alarms: 1e-7."""
        x = module._from_the_rest(4_000_000, np.random.default_rng(2))
        edges = np.concatenate([[0.0], module._WIDTHS[::-1], [np.inf]])
        area = np.diff(ndtr(edges)) * np.sqrt(2 * np.pi)
        area[:-1] -= np.diff(edges[:-1]) * module._TOPS[::-1]
        mean = len(x) * area / area.sum()
        seen = np.histogram(np.abs(x), edges)[0]
        chi_square = ((seen - mean) ** 2 / mean).sum()
        assert chi_square < scipy.stats.chi2.isf(FALSE_ALARM, len(mean) - 1)
        # The signs: 5.33 standard deviations have a false-alarm rate of 1e-7.
        assert abs(np.sign(x).sum()) < 5.33 * np.sqrt(len(x))

    def test_tail_alone(self):
        """Beyond the widest layer the law is the normal one; false alarms: 1e-7."""
        x = np.abs(module._from_the_rest(4_000_000, np.random.default_rng(3)))
        edges = module._WIDTHS[0] + np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, np.inf])
        seen = np.histogram(x, edges)[0]
        area = -np.diff(ndtr(-edges))
        mean = seen.sum() * area / area.sum()
        assert ((seen - mean) ** 2 / mean).sum() < scipy.stats.chi2.isf(FALSE_ALARM, len(mean) - 1)

    def test_mean_square(self):
        """Of 10^8; 5.33 standard deviations, false alarms of 1e-7."""
        total = sum((draw(2_000_000, seed) ** 2).sum() for seed in range(50))
        assert abs(total / 1e8 - 1) < 5.33 * np.sqrt(2 / 1e8)

    @pytest.mark.parametrize("lag", [1, 2, 64])
    def test_neighbours_are_independent(self, lag):
        """Products of x and of x**2 - 1, each 5.33 standard deviations: false alarms of 1e-7."""
        x = draw(4_000_000, 9)
        for values in (x, x**2 - 1):
            products = values[:-lag] * values[lag:]
            assert abs(products.mean()) < 5.33 * products.std() / np.sqrt(len(products))


class TestCalls:
    def test_shape_and_scale(self):
        assert normals((3, 5), 2.0, np.random.default_rng(1)).shape == (3, 5)
        np.testing.assert_allclose(draw(1000, 1, 3.0), 3 * draw(1000, 1), rtol=1e-15)

    @pytest.mark.parametrize("size", [0, 1, 7])
    def test_small_and_odd_sizes(self, size):
        assert draw(size, 1).shape == (size,)

    def test_same_generator_same_numbers(self):
        np.testing.assert_array_equal(draw(5000, 4), draw(5000, 4))

    @pytest.mark.parametrize("kind", [np.random.MT19937, np.random.PCG64, np.random.Philox])
    def test_any_bit_generator(self, kind):
        """Mean and mean square of 10^6; 5.33 standard deviations, false alarms of 1e-7."""
        x = normals((1_000_000,), 1.0, np.random.Generator(kind(1)))
        assert abs(x.mean()) < 5.33e-3
        assert abs((x**2).mean() - 1) < 5.33e-3 * np.sqrt(2)
