"""The audit: it stays below what is true, comes close to it, and finds what is wrong.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6, or states its own.
"""

import math
from itertools import product

import numpy as np
import pytest
import scipy
from strategies import PAPER

from ldpcash import Cash, PolarCode, Prot, gaussian_sigma
from ldpcash.beyond.audit import (
    audit,
    bias,
    farthest_items,
    joint_odds,
    randomizer_of,
    rounding_score,
    ruled_out,
)
from ldpcash.beyond.faults import (
    FloatNoise,
    HalfSensitivity,
    LazyCoin,
    SwappedCoin,
    reused_noise,
)
from ldpcash.histogram.prot_channels import ProtChannels
from ldpcash.histogram.symbols import symbol_code

SURE = 1 - 1e-6
A, B = farthest_items(PAPER)


def generator(seed):
    return np.random.Generator(np.random.SFC64(seed))


def gaussian(signal, count, rng):
    """The worst pair of Cash at (1, 1e-4), seen along the line between both signals."""
    return signal * 2 / gaussian_sigma(1.0, 1e-4, 2.0) + rng.standard_normal((count, 1))


class TestHonest:
    @pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.0])
    @pytest.mark.parametrize("pair", [(A, B), (B, A), (A, None), (None, B)])
    @pytest.mark.parametrize("protocol", [Cash, Prot])
    def test_is_never_refuted(self, protocol, epsilon, pair):
        """At this confidence the claim would be refuted by chance with 1e-6."""
        honest = protocol(PAPER, epsilon)
        delta = getattr(honest, "delta", 0.0)
        found = audit(
            randomizer_of(honest),
            *pair,
            epsilon,
            delta,
            40_000,
            generator(1),
            SURE,
            [rounding_score(PAPER, A, B)],
        )
        assert not found.refuted
        assert found.judged == 20_000

    def test_bounds_stay_below_the_truth_as_often_as_they_say(self):
        """400 audits at 75 %: more than 148 above the truth come up with 4e-8, were it one in 4."""
        above = sum(
            audit(gaussian, 1, 0, 1.0, 1e-4, 4000, generator(s), 0.75).refuted for s in range(400)
        )
        assert above <= 148
        assert scipy.stats.binom.sf(148, 400, 0.25) < 1e-6

    @pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.0])
    def test_randomized_response_is_measured_to_a_few_percent(self, epsilon):
        found = audit(
            randomizer_of(Prot(PAPER, epsilon)), A, B, epsilon, 0.0, 400_000, generator(2)
        )
        assert 0.9 * epsilon < found.epsilon <= epsilon

    def test_has_teeth(self):
        """A million reports of each input. Over 25 seeds the bound was 0.80 +- 0.04, and at least
        0.71; so of other seeds one in a hundred may fail, but the seed is fixed."""
        found = audit(
            randomizer_of(Cash(PAPER, 1.0)), A, B, 1.0, 1e-4, 10**6, generator([2026, 10**6])
        )
        assert 0.7 <= found.epsilon <= 1.0
        assert found.claimed == 1.0

    @pytest.mark.parametrize(("delta", "wrong"), [(0.1, False), (0.08, True)])
    def test_delta_is_allowed_for(self, delta, wrong):
        """One who tells the truth with a probability of 0.1, and else nothing, is (0, 0.1) private.

        Of 50,000 such reports fewer than 4600 tell the truth with 1e-9."""

        def rarely(truth, count, rng):
            return truth * (rng.random((count, 1)) < 0.1)

        found = audit(rarely, 1.0, -1.0, 0.5, delta, 100_000, generator(8), SURE)
        assert found.refuted == wrong

    def test_same_inputs_show_nothing(self):
        found = audit(randomizer_of(Cash(PAPER, 1.0)), A, A, 1.0, 1e-4, 20_000, generator(3), SURE)
        assert found.epsilon == 0

    def test_counts_are_those_of_the_favoured_input_first(self):
        for one, other, favoured in ((1, 0, "a"), (0, 1, "a")):
            found = audit(
                lambda x, count, rng: np.full((count, 1), float(x)),
                one,
                other,
                1.0,
                0.0,
                1000,
                generator(4),
            )
            assert (found.favours, found.hits, found.judged) == (favoured, (500, 0), 500)
            # 500 of 500 and 0 of 500: Clopper and Pearson's bounds in closed form
            assert found.epsilon == pytest.approx(
                math.log(0.025 ** (1 / 500) / (1 - 0.025 ** (1 / 500)))
            )


class TestFaults:
    """Each is found with a confidence of 1 - 1e-6."""

    @pytest.mark.parametrize(
        ("kind", "made", "delta"),
        [
            (HalfSensitivity, randomizer_of, 1e-4),
            (Cash, reused_noise, 1e-4),
            (FloatNoise, randomizer_of, 1e-4),
            (LazyCoin, randomizer_of, 0.0),
        ],
        ids=["sensitivity 1", "reused noise", "floating point", "lazy coin"],
    )
    def test_is_found(self, kind, made, delta):
        randomizer = made(kind(PAPER, 1.0))
        score = rounding_score(PAPER, A, B)
        found = audit(randomizer, A, B, 1.0, delta, 300_000, generator(5), SURE, [score])
        assert found.refuted

    def test_a_swapped_coin_is_as_private_but_wrong(self):
        swapped = SwappedCoin(PAPER, 1.0)
        found = audit(randomizer_of(swapped), A, B, 1.0, 0.0, 100_000, generator(6), SURE)
        assert 0.9 < found.epsilon <= 1
        assert bias(swapped, A, 10_000, generator(6)) < -50
        for honest in (Prot(PAPER, 1.0), Cash(PAPER, 1.0)):
            assert abs(bias(honest, A, 10_000, generator(6))) < scipy.stats.norm.isf(5e-7)

    def test_a_swapped_coin_does_swap(self):
        kept = randomizer_of(SwappedCoin(PAPER, 2.0))(A, 20_000, generator(7)) @ np.ones(64) > 0
        flip = 1 / (1 + math.exp(2.0))
        assert scipy.stats.binomtest(int(kept.sum()), 20_000, flip).pvalue > 1e-6


class TestRounding:
    @pytest.mark.parametrize("item", [A, B])
    def test_floating_point_gives_bits_away(self, item):
        """Three clients in four lose one, and no verdict is ever wrong. The limits are six standard
        deviations from 0.77."""
        reports = randomizer_of(FloatNoise(PAPER, 1.0))(item, 10_000, generator(1))
        impossible = ruled_out(reports)
        bit = int(item[-1])  # of all positions
        assert not impossible[bit].any()
        assert 0.74 < impossible[1 - bit].any(axis=1).mean() < 0.80

    def test_the_default_report_gives_none_away(self, subtests):
        """The attack on our own client: it fails if noise is added in floating point."""
        for n, epsilon in product([16, 64, 256], [0.2, 1.0, 5.0]):
            code = PolarCode.construct(n, 4)
            reports = randomizer_of(Cash(code, epsilon))
            for item in (*farthest_items(code), None):
                with subtests.test(n=n, epsilon=epsilon, item=item):
                    assert not ruled_out(reports(item, 2000, generator(2))).any()

    def test_no_float_leads_there(self):
        """By search: a report just below a power of two, which from -0.5 takes an odd half step."""
        report = np.nextafter(1.0, 0)
        assert ruled_out(np.full(4, report))[:, 0].tolist() == [True, False]
        assert not reachable(report, -0.5)
        assert reachable(report, 0.5)

    @pytest.mark.parametrize("n", [2, 8, 64, 128])
    def test_what_is_ruled_out_is_what_a_search_does_not_find(self, n):
        reports = np.concatenate(
            [[s + v for v in generator(n).standard_normal(1500)] for s in (-1 / n**0.5, 1 / n**0.5)]
        )
        reports = np.append(reports, np.nextafter(reports, 0))  # of both kinds
        found = ruled_out(np.tile(reports[:, None], n))[:, :, 0]
        for impossible, signal in zip(found, (-1 / n**0.5, 1 / n**0.5), strict=True):
            assert impossible.any()
            for report, verdict in zip(reports, impossible, strict=True):
                assert verdict != reachable(report, signal)


def reachable(report, signal):
    """Whether one of many floats around their difference leads from a signal to a report."""
    noise = report - signal
    for _ in range(4):
        noise = np.nextafter(noise, -np.inf)
    for _ in range(9):
        if signal + noise == report:
            return True
        noise = np.nextafter(noise, np.inf)
    return False


@pytest.mark.parametrize("bits", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize("blank", [False, True])
def test_the_joint_release_over_all_channels_costs_no_more_than_one(bits, epsilon, count, blank):
    prot = ProtChannels(symbol_code(3, bits), epsilon, count, bits, blank)
    assert joint_odds(prot) == pytest.approx(np.exp(epsilon), rel=1e-12)


def test_bad_arguments():
    for samples, confidence, message in [
        (99, 0.9, "samples = 99: needs a whole number from 100"),
        (1000, 1.0, r"confidence = 1\.0: needs a number between 0 and 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            audit(gaussian, 1, 0, 1.0, 1e-4, samples, generator(0), confidence)
