"""Safe noise against arithmetic with 90 digits, enumeration and Google's dp_accounting.

Every statistical test has a false-alarm rate of at most 1e-6; those of the operating system's
randomness are the only ones without a fixed seed.
"""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_discrete_gaussian_mechanism
from scipy import stats

from ldpcash import Cash, PolarCode, Prot, gaussian_sigma
from ldpcash.base.randomness import random_words
from ldpcash.privacy import discrete
from ldpcash.privacy.discrete import discrete_gaussian
from ldpcash.privacy.grid import Grid, grid_delta, safe_grid

FALSE_ALARM = 1e-6
PAPER = PolarCode.construct(64, 8)
ITEM = np.array([1, 0, 1, 1, 0, 0, 1, 0], dtype=np.uint8)


@pytest.fixture(autouse=True)
def many_digits():
    with mp.workdps(90):
        yield


def masses(scale, reach):
    """Probabilities of -reach to reach; what is beyond 40 scales is below 1e-340."""
    weights = [mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(scale) ** 2)) for k in range(reach + 1)]
    weights = weights[:0:-1] + weights
    total = mp.fsum(weights)
    return [weight / total for weight in weights]


class Script:
    """A source of words that were chosen beforehand, 64 bits each."""

    def __init__(self, *words):
        self.words = list(words)

    def integers(self, low, high, count, dtype):
        assert (low, high, dtype) == (0, 2**64, np.uint64)
        return np.array([self.words.pop(0) for _ in range(count)], dtype=np.uint64)


class TestSampler:
    @pytest.mark.parametrize(("scale", "bits"), [(1.0, 64), (4.7, 192), (64.0, 64), (101.9, 128)])
    def test_bounds_enclose_every_cumulative_probability(self, scale, bits):
        low, high = discrete._bounds(scale, bits)
        reach = len(low) // 2
        mass = masses(scale, max(reach, round(40 * scale)))
        beyond = len(mass) // 2 - reach
        total = mp.fsum(mass[:beyond])
        for p, below, above in zip(mass[beyond:], low, high, strict=False):
            total += p
            assert below <= total * 2**bits < above + 1
            assert above - below <= 1
        assert low[0] == 0
        assert high[-2] == 2**bits - 1  # both ends stay open

    def test_each_short_answer_is_the_only_one(self):
        """All 2^16 words: the answer's cumulative probabilities enclose the word's interval."""
        scale = 64.0
        _, _, answers = discrete._tables(scale)
        mass = np.array([float(p) for p in masses(scale, 700)])
        above = np.cumsum(mass)
        words = np.arange(2**16)
        decided = answers != discrete._UNDECIDED
        index = answers[decided] + 700
        assert (words[decided] / 2**16 > above[index - 1] - 1e-12).all()
        assert ((words[decided] + 1) / 2**16 < above[index] + 1e-12).all()
        assert 0.98 < decided.mean() < 1

    @pytest.mark.parametrize("scale", [1.0, 9.3, 101.94249567877203, 3000.5])
    def test_the_law(self, scale):
        drawn = discrete_gaussian(scale, (400, 1000), np.random.default_rng(3)).ravel()
        reach = round(8 * scale)
        k = np.arange(-reach, reach + 1)
        expected = np.exp(-(k**2) / (2 * scale**2))
        expected *= drawn.size / expected.sum()
        seen = np.bincount(drawn + reach, minlength=len(k))
        width = max(1, round(scale / 8))  # neighbours go together, and so do rare ones
        cells = np.arange(len(k)) // width
        expected, seen = np.bincount(cells, expected), np.bincount(cells, seen)
        common = expected >= 20
        expected = np.append(expected[common], expected[~common].sum())
        seen = np.append(seen[common], seen[~common].sum())
        statistic = ((seen - expected) ** 2 / expected).sum()
        assert stats.chi2.sf(statistic, len(seen) - 1) > FALSE_ALARM

    def test_the_operating_system_s_randomness(self):
        drawn = discrete_gaussian(50.0, (300_000,), None)
        assert (
            stats.kstest(
                drawn + np.random.default_rng(1).random(drawn.size) - 0.5, "norm", (0, 50)
            ).pvalue
            > FALSE_ALARM
        )
        words = random_words((100_000,), 64, None)
        ones = sum(
            int(np.bitwise_count(words >> np.uint64(b) & np.uint64(1)).sum()) for b in range(64)
        )
        assert abs(ones - 3_200_000) < 5 * math.sqrt(6_400_000 / 4)  # 6e-7
        assert not np.array_equal(words, random_words((100_000,), 64, None))

    @pytest.mark.parametrize("width", [8, 16, 32, 64])
    def test_words_of_any_width(self, width):
        for rng in (None, np.random.default_rng(1)):
            words = random_words((3, 1001), width, rng)
            assert words.shape == (3, 1001)
            assert words.dtype.itemsize * 8 == width
            words[0] = 0  # may be written to

    @pytest.mark.parametrize("last", [0, 1, 2**63, 2**64 - 1])
    @pytest.mark.parametrize("which", [0, 300, 837, 838, 900, -1])
    def test_open_draws_take_more_words(self, which, last):
        """Words that agree with a bound in all of 64 bits, and the exact inverse of all 128."""
        scale = 64.0
        low, _, _ = discrete._tables(scale)
        word = int(low[which])
        source = Script(word >> 48, (word << 16) & (2**64 - 1), last, 2**63)
        drawn = int(discrete_gaussian(scale, (1,), source)[0])
        assert len(source.words) <= 1  # at least three were needed
        u = (mp.mpf(word) * 2**64 + last + mp.mpf(1) / 2) / mp.mpf(2) ** 128
        assert drawn == exact_inverse(scale, u)

    def test_the_last_resort_goes_on_as_long_as_it_must(self):
        """U = 0.000... in 192 bits lies far out, at the probability of the fourth word."""
        source = Script(0, 0, 0, 2**63)
        drawn = int(discrete_gaussian(5.0, (1,), source)[0])
        assert drawn == exact_inverse(5.0, mp.mpf(2) ** -129)
        assert drawn < -60

    def test_bad_scales(self):
        for scale in (0.5, 2.0**17, math.nan):
            with pytest.raises(ValueError, match=r"scale = .*needs a number from 1 to 65536"):
                discrete_gaussian(scale, (1,), None)


def exact_inverse(scale, u):
    """The smallest k with P(X <= k) > u."""
    reach = round(30 * scale)
    total = mp.mpf(0)
    for k, p in enumerate(masses(scale, reach), start=-reach):
        total += p
        if total > u:
            return k
    raise AssertionError


def convolution(scale, count):
    """Exact law of a sum of discrete Gaussians: probabilities of -reach to reach."""
    one = np.array(masses(scale, math.ceil(14 * scale)), dtype=object)
    law = one
    for _ in range(count - 1):
        law = np.convolve(law, one)
    return law


class TestProfile:
    @pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
    @pytest.mark.parametrize(
        ("scale", "shift", "count"),
        [(4.0, 1, 3), (4.0, 6, 2), (5.3, 2, 1), (6.0, 4, 4), (4, 30, 4)],
    )
    def test_is_the_exact_delta(self, epsilon, scale, shift, count):
        """Against the convolved law, as the largest P_a(E) - e^epsilon P_b(E) over all events E."""
        law = convolution(scale, count)
        move = shift * count
        other = np.concatenate([law[move:], [mp.mpf(0)] * min(move, len(law))])[: len(law)]
        factor = mp.exp(epsilon)
        exact = mp.fsum(max(p - factor * q, 0) for p, q in zip(law, other, strict=True))
        bound = grid_delta(epsilon, scale, shift, count)
        if exact > 1e-25:  # smaller ones feel where the enumeration ends
            assert exact <= bound <= exact * (1 + mp.mpf("1e-8"))

    def test_sums_over_coordinates_are_all_that_counts(self):
        """Both coordinates of reports in the plane, event by event."""
        scale, epsilon = 4.0, 0.7
        p = np.array([float(x) for x in masses(scale, 60)])
        a = np.outer(p, p)
        b = np.zeros_like(a)
        b[3:, :-3] = a[:-3, 3:]  # moved by +3 and by -3
        exact = np.maximum(a - np.exp(epsilon) * b, 0).sum()
        assert grid_delta(epsilon, scale, 3, 2) == pytest.approx(exact, rel=1e-8)

    @pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
    def test_against_dp_accounting(self, epsilon):
        """Theirs is for one coordinate, and rounds losses up to a multiple of 1e-5."""
        theirs = from_discrete_gaussian_mechanism(
            20.0, sensitivity=9, value_discretization_interval=1e-5, truncation_bound=300
        )
        delta = theirs.get_delta_for_epsilon(epsilon)
        assert grid_delta(epsilon, 20.0, 9, 1) == pytest.approx(delta, rel=1e-3)

    @pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
    def test_reports_of_both_kinds_mix(self, epsilon):
        """One coordinate that differs by 2 and two that differ by 1, against their exact law."""
        scale = 5.0
        wide = np.zeros(2 * len(masses(scale, 70)) - 1, dtype=object) + mp.mpf(0)
        wide[::2] = masses(scale, 70)
        law = np.convolve(wide, np.convolve(masses(scale, 70), masses(scale, 70)))
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
    @pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 8.0, 20.0])
    @pytest.mark.parametrize(
        ("delta", "n", "weight"), [(1e-4, 64, 64), (1e-9, 64, 48), (1e-2, 16, 8), (1e-4, 4, 1)]
    )
    def test_keeps_the_promise(self, epsilon, delta, n, weight):
        sigma = gaussian_sigma(epsilon, delta, max(2 * math.sqrt(weight / n), 1.0))
        grid = safe_grid(epsilon, delta, sigma, n, weight)
        assert exact_delta(grid, epsilon) <= mp.mpf(delta)
        assert exact_delta(grid, epsilon) == pytest.approx(delta, rel=1e-3)  # and wastes nothing
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

    def test_too_much_noise_for_the_table(self):
        cash = Cash(PAPER, 1e-6, 1e-12)
        with pytest.raises(ValueError, match=r"sigma = .*: more than 8192, .* larger epsilon"):
            cash.reports([ITEM], [True])

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
        edges = stats.norm.cdf((np.arange(-reach, reach + 2) - 0.5) * grid.step / cash.sigma)
        distance = 0.5 * abs(client - np.diff(edges)).sum()
        assert distance < 3e-5
        assert abs((client * k**2).sum() * grid.step**2 / cash.sigma**2 - 1) < 2e-5


class TestReports:
    @pytest.mark.parametrize("rng", [None, np.random.default_rng(1)])
    def test_cash_sends_whole_steps(self, rng):
        cash = Cash(PAPER, 1.0)
        sent = cash.reports(np.tile(ITEM, (200, 1)), np.arange(200) % 2 == 0, rng)
        steps = sent / cash.grid.step
        assert (steps == np.rint(steps)).all()
        assert 0.9 < (steps % 2).mean() * 2 < 1.1  # all of them: 10 standard deviations

    def test_signals_are_on_the_grid_with_noise_of_its_scale(self):
        cash = Cash(PAPER, 4.0)
        item = np.tile(ITEM, (20_000, 1))
        rng = np.random.default_rng(2)
        limit = stats.norm.isf(FALSE_ALARM / 128)
        for holds, x in ((True, (2.0 * PAPER.encode(ITEM) - 1) / 8), (False, np.zeros(64))):
            sent = cash.reports(item, np.full(20_000, holds), rng)
            assert (abs(sent.mean(axis=0) - x) < limit * cash.sigma / math.sqrt(20_000)).all()
            variance = ((sent - x) ** 2).mean()
            assert abs(variance / cash.sigma**2 - 1) < limit * math.sqrt(2 / sent.size)

    def test_prot_from_the_operating_system(self):
        """Kept signs are binomial: a real client's coin is the right one."""
        prot = Prot(PAPER, 1.0)
        sent = prot.reports(np.tile(ITEM, (20_000, 1)), np.ones(20_000, dtype=bool))
        kept = int((sent @ (2.0 * PAPER.encode(ITEM) - 1) > 0).sum())
        p = math.e / (math.e + 1)
        assert stats.binomtest(kept, 20_000, p).pvalue > FALSE_ALARM

    @pytest.mark.parametrize("holds", list(itertools.product([True, False], repeat=2)))
    def test_prot_s_coin_is_a_comparison(self, holds, monkeypatch):
        """The largest word that keeps the sign, and the smallest that flips it."""
        prot = Prot(PolarCode(2, [0, 1]), 1.0)
        threshold = int(mp.floor(mp.mpf(2) ** 64 / (1 + mp.exp(-1))))
        words = {32: [0, 1], 64: [threshold - 1, threshold], 8: [2, 3]}
        kinds = {8: np.uint8, 32: np.uint32, 64: np.uint64}
        monkeypatch.setattr(
            "ldpcash.protocols.random_words",
            lambda shape, width, rng: np.array(words[width], dtype=kinds[width]),
        )
        sent = prot.reports([[0, 1], [0, 1]], list(holds)) / prot.amplitude  # codeword 1 1
        expected = [[1.0, 0.0], [0.0, -1.0]]  # kept and flipped; or even and odd
        assert sent.tolist() == expected
