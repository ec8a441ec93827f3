"""Symbols: their coins in fractions, their noise against published formulas, and their codes.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

from fractions import Fraction

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from strategies import FALSE_ALARM

from ldpcash.codec.hadamard import symbol_width
from ldpcash.histogram.symbols import SymbolResponse, symbol_code, widest
from ldpcash.privacy.answers import WORDS
from ldpcash.protocols.views import Views

EPSILONS = st.floats(0.05, 12)
WIDTHS = st.integers(1, 12)


def coins(response):
    """Words of 64 bits that mean: the true symbol, any symbol; any symbol of an empty client."""
    true, any_symbol, any_empty = (int(last) + 1 for last in response._last.tolist())
    return true, any_symbol - true, any_empty


class TestPrivacy:
    @given(EPSILONS, WIDTHS, st.booleans())
    def test_all_odds_are_at_most_e_to_the_epsilon(self, epsilon, width, blank):
        """In fractions: of each symbol and of a blank, between all pairs of clients."""
        response = SymbolResponse(epsilon, width, blank)
        true, anything, empty = coins(response)
        g = response.symbols
        own, other = Fraction(true) + Fraction(anything, g), Fraction(anything, g)
        nothing = Fraction(empty, g)
        bound = Fraction(np.exp(epsilon)) * (1 + Fraction(1, 10**12))
        for one, two in [(own, other), (own, nothing), (nothing, other)]:
            assert 1 <= one / two <= bound or one == two
        blanks = WORDS - true - anything, WORDS - empty
        if blank:
            assert 1 <= Fraction(blanks[1], blanks[0]) <= bound
        else:
            assert blanks == (0, 0)

    @pytest.mark.parametrize("blank", [False, True])
    def test_what_is_sent_has_that_law(self, blank):
        """Chi-square tests of 200,000 clients that hold symbol 5, and of as many that hold none."""
        response, rng = SymbolResponse(1.0, 3, blank), np.random.default_rng(1)
        true, anything, empty = coins(response)
        for held in (True, False):
            sent = response.send(np.full(200_000, 5), np.full(200_000, held), rng)
            counts = np.bincount(sent, minlength=9)
            law = np.full(9, (anything if held else empty) / 8 / WORDS)
            law[5] += held * true / WORDS
            law[8] = 1 - law[:8].sum()
            seen = law > 1e-15
            assert counts[~seen].sum() == 0
            expected = 200_000 * law[seen] / law[seen].sum()
            assert scipy.stats.chisquare(counts[seen], expected).pvalue > FALSE_ALARM

    def test_an_epsilon_beyond_all_exponents(self):
        large, larger = (SymbolResponse(epsilon, 3).true for epsilon in (100.0, 800.0))
        assert 1 - 1e-14 < large == larger < 1


class TestNoise:
    @given(EPSILONS, WIDTHS)
    def test_without_a_blank_it_is_that_of_local_hashing(self, epsilon, width):
        """Wang et al. 2017: (e^eps - 1 + g)^2 / ((e^eps - 1)^2 (g - 1)) times 1 / N."""
        g, less = 2**width, np.expm1(epsilon)
        published = (less + g) ** 2 / (less**2 * (g - 1))
        assert SymbolResponse(epsilon, width).noise(0.3) ** 2 == pytest.approx(published, rel=1e-9)

    @pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 6.0, 8.0])
    def test_the_best_is_close_to_the_optimum(self, epsilon):
        optimum = 2 * np.exp(epsilon / 2) / np.expm1(epsilon)
        assert optimum <= SymbolResponse.best(epsilon).noise(0.0) < 1.04 * optimum

    def test_a_blank_is_best_where_most_are_empty(self):
        for epsilon in (1.0, 2.0, 4.0):
            assert not SymbolResponse.best(epsilon, 0.0).blank
            assert SymbolResponse.best(epsilon, 0.95).blank
            shares = np.linspace(0, 1, 11)
            noise = [SymbolResponse.best(epsilon, share).noise(share) for share in shares]
            assert (np.diff(noise) <= 1e-12).all()

    def test_where_all_are_empty_it_is_what_answers_and_blanks_tell(self):
        """alpha (e^eps - 1)^2 / e^eps (g - 1) / g is what a client tells, per f^2."""
        for epsilon, width in [(2.0, 2), (4.0, 3)]:
            E, g = np.exp(epsilon), 2**width
            alpha = (E - 1) / (E + g - 1 - g / E)
            told = alpha * (E - 1) ** 2 / E * (g - 1) / g
            noise = SymbolResponse(epsilon, width, blank=True).noise(1.0)
            assert 1 / noise**2 == pytest.approx(told, rel=1e-9)

    @given(st.floats(0.3, 6), st.integers(1, 6), st.booleans(), st.floats(0, 1))
    def test_variance_is_that_of_what_single_clients_say(self, epsilon, width, blank, frequency):
        """The estimate is linear in matches less 1 / g of all answers, client by client."""
        response, g, N = SymbolResponse(epsilon, width, blank), 2**width, 1000
        held, empty = frequency, 1 - frequency
        answers = N * (held * (response.true + response.any) + empty * response.any_empty)

        def spread(match, answer):  # of (g - 1) if it matches, -1 if it answers otherwise
            mean = match * g - answer
            return match * (g - 1) ** 2 + (answer - match) - mean**2

        own = spread(response.match, response.true + response.any)
        # Others are known by their number of answers alone, each of which matches with 1 / g.
        others = response.any_empty * (g - 1)
        wanted = (held * own + empty * others) / (N * (response.true * (g - 1)) ** 2)
        seen = response.variance(np.array([frequency]), answers, N)
        assert seen[0] == pytest.approx(wanted, rel=1e-9)


class TestPValue:
    @pytest.mark.parametrize("heard", [-0.02, 0.0, 0.1])
    def test_of_an_item_that_nobody_holds(self, heard):
        """A binomial tail: of A answers, at least so many match, where known items add to 1 / g."""
        response, answers, clients, g = SymbolResponse(2.0, 3), 8000, 10_000, 8
        holder = response.true * (g - 1) / g  # matches that a holder brings
        expected = answers / g + clients * heard * holder
        for matches in (900, 1000, 1100, 1200):
            estimate = np.array([(matches - expected) / (clients * holder)])
            p = response.p_value(estimate, np.array([heard]), answers, clients)
            wanted = scipy.stats.binom.sf(matches - 1, answers, expected / answers)
            assert p[0] == pytest.approx(wanted, rel=1e-6)

    def test_it_falls_with_the_estimate(self):
        response = SymbolResponse(2.0, 3)
        p = response.p_value(np.linspace(-1, 1, 50), np.zeros(50), 1000, 1000)
        assert (np.diff(p) <= 0).all()
        assert (p[0], p[-1]) == (1, pytest.approx(0, abs=1e-100))

    def test_crowding_is_the_variance_of_as_many_matches(self):
        response, clients, g = SymbolResponse(2.0, 3), 10_000, 8
        holder = response.true * (g - 1) / g
        seen = response.crowding(np.array([0.1]), clients)
        assert seen[0] == pytest.approx(0.1 * clients * holder / (clients * holder) ** 2)


class TestCodes:
    @pytest.mark.parametrize("k", [8, 40, 64, 128, 300])
    def test_there_is_a_code_for_every_width(self, k):
        for width in range(1, widest(k) + 1):
            code = symbol_code(k, width)
            assert (code.k, symbol_width(code)) == (k, max(6, width) if width <= 3 else width)
            blocks = code.n >> symbol_width(code)
            assert blocks * symbol_width(code) >= k + 6
            assert Views(code, width).values == 2**width

    def test_it_ends_where_codes_would_be_too_long(self):
        assert widest(1000) < 12
        with pytest.raises(ValueError, match="n = "):
            symbol_code(1000, 12)

    def test_wrong_arguments(self):
        with pytest.raises(ValueError, match=r"^k = 0: needs a whole number from 1"):
            symbol_code(0, 3)
        for width in (0, 13, 1.5, "2"):
            with pytest.raises(ValueError, match=r"^width = .*from 1 to 12"):
                SymbolResponse(1.0, width)
        for epsilon in (0, -1, np.inf, "1"):
            with pytest.raises(ValueError, match=r"^epsilon = "):
                SymbolResponse(epsilon, 2)
        with pytest.raises(ValueError, match=r"^empty = 2"):
            SymbolResponse.best(1.0, 2)
