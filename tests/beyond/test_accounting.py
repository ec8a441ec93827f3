"""Accounting against enumeration, closed forms and Google's dp_accounting."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from strategies import ITEM, PAPER

from ldpcash import Cash, Prot, gaussian_delta
from ldpcash.beyond.accounting import (
    Budget,
    BudgetError,
    response_delta,
    spent_delta,
    spent_epsilon,
)


def exact_delta(epsilon, each, reports):
    """In 40 digits: terms from the largest one on, up and down, each from the one before it."""
    with mp.workdps(40):
        each, k = mp.mpf(each), reports
        odds = mp.exp(-each)
        last = min(int(mp.ceil((k - epsilon / each) / 2)) - 1, k)  # loss above epsilon up to here
        mode = min(last, int(k * odds / (1 + odds)))
        log_largest = mp.loggamma(k + 1) - mp.loggamma(mode + 1) - mp.loggamma(k - mode + 1)
        largest = mp.exp(log_largest - mode * each - k * mp.log1p(odds))

        def tail(i, chance, step):
            total = mp.mpf(0)
            while 0 <= i <= last and chance > largest * mp.mpf(10) ** -25:
                total -= chance * mp.expm1(epsilon - (k - 2 * i) * each)
                chance *= odds * (k - i) / (i + 1) if step > 0 else i / (odds * (k - i + 1))
                i += step
            return total

        below = largest * mode / (odds * (k - mode + 1))
        return tail(mode, largest, 1) + tail(mode - 1, below, -1)


class TestProt:
    def test_delta_is_what_all_outcomes_add_up_to(self, subtests):
        p = 1 / (1 + math.exp(-0.6))
        for epsilon, reports in itertools.product([0.0, 0.5, 1.7, 3.0], [1, 2, 5, 9]):
            exact = 0.0
            for kept in itertools.product([True, False], repeat=reports):
                a = math.prod(p if k else 1 - p for k in kept)
                b = math.prod(1 - p if k else p for k in kept)
                exact += max(0.0, a - math.exp(epsilon) * b)
            with subtests.test(epsilon=epsilon, reports=reports):
                delta = response_delta(epsilon, 0.6, reports)
                assert delta == pytest.approx(exact, rel=1e-8, abs=1e-15)

    def test_delta_is_never_below_the_exact_one(self, subtests):
        for epsilon, each, reports in [
            (2.0, 0.5, 10),
            (60.0, 1.0, 100),
            (5.0, 0.1, 1000),
            (7.0, 0.01, 10**5),
            (0.0, 0.001, 10**6),
            (4.0, 0.001, 10**6),
            (6000.0, 0.1, 10**6),
            (3.3, 0.00077, 1_234_567),
            (2.0, 0.0005, 3 * 10**6),
        ]:
            with subtests.test(epsilon=epsilon, each=each, reports=reports):
                exact = exact_delta(epsilon, each, reports)
                delta = response_delta(epsilon, each, reports)
                assert exact <= delta <= exact * (1 + 1e-9 + 4e-14 * reports)

    def test_epsilon_against_dp_accounting(self, subtests):
        """Theirs rounds losses up to a multiple of 1e-5, report by report."""
        from dp_accounting.pld import privacy_loss_distribution as pld  # slow to import

        keep = math.exp(0.3) / (math.exp(0.3) + 1)
        one = pld.from_randomized_response(2 * (1 - keep), 2, value_discretization_interval=1e-5)
        for reports in (1, 10, 100):
            several = one.self_compose(reports)
            for delta in (1e-6, 1e-4, 1e-2):
                with subtests.test(reports=reports, delta=delta):
                    theirs = several.get_epsilon_for_delta(delta)
                    mine = spent_epsilon(Prot(PAPER, 0.3), reports, delta)
                    assert theirs - 1e-5 * (reports + 1) <= mine <= theirs + 1e-6

    @pytest.mark.parametrize("reports", [1, 3, 40])
    def test_without_delta_it_is_basic_composition(self, reports):
        assert spent_epsilon(Prot(PAPER, 0.3), reports, 0.0) == pytest.approx(0.3 * reports)


class TestCash:
    def test_k_reports_are_one_with_sqrt_k_times_the_sensitivity(self, subtests):
        cash = Cash(PAPER, 1.0)
        for reports, epsilon in itertools.product([1, 2, 30], [0.5, 2.0, 6.0]):
            with subtests.test(reports=reports, epsilon=epsilon):
                continuous = gaussian_delta(epsilon, cash.sigma, 2 * math.sqrt(reports))
                assert spent_delta(cash, reports, epsilon) == pytest.approx(continuous, rel=1e-3)

    @pytest.mark.parametrize("reports", [1, 10])
    def test_epsilon_against_dp_accounting(self, reports):
        from dp_accounting.pld import privacy_loss_distribution as pld  # slow to import

        cash = Cash(PAPER, 1.0)
        one = pld.from_gaussian_mechanism(
            cash.sigma, sensitivity=2.0, value_discretization_interval=1e-4
        )
        theirs = one.self_compose(reports).get_epsilon_for_delta(1e-4)
        assert spent_epsilon(cash, reports, 1e-4) == pytest.approx(theirs, rel=2e-3)

    def test_one_report_spends_what_was_promised(self):
        for epsilon in (0.2, 1.0, 5.0):
            spent = spent_epsilon(Cash(PAPER, epsilon), 1, 1e-4)
            assert 0.9999 * epsilon < spent <= epsilon * (1 + 1e-9)

    def test_without_delta_there_is_no_promise(self):
        assert spent_epsilon(Cash(PAPER, 1.0), 1, 0.0) == math.inf


class TestBudget:
    @pytest.mark.parametrize("kind", [Cash, Prot])
    def test_ends_where_the_promise_does(self, kind):
        protocol = kind(PAPER, 0.5)
        budget = Budget(protocol, 2.0, 1e-4)
        allowed = budget.left
        assert (
            spent_epsilon(protocol, allowed, 1e-4)
            <= 2.0
            < spent_epsilon(protocol, allowed + 1, 1e-4)
        )
        rng = np.random.default_rng(1)
        for made in range(allowed):
            assert budget.left == allowed - made
            assert budget.report(ITEM if made % 2 else None, rng).shape == (64,)
        with pytest.raises(BudgetError, match=rf"report {allowed + 1} would spend more than"):
            budget.report(ITEM, rng)
        assert (budget.reports, budget.left) == (allowed, 0)

    def test_a_report_that_fails_costs_nothing(self):
        budget = Budget(Prot(PAPER, 0.5), 2.0, 0.0)
        with pytest.raises(ValueError, match="bits has shape"):
            budget.report([1, 0])
        assert (budget.reports, budget.left) == (0, 4)

    def test_optimal_composition_allows_more_than_basic(self):
        assert Budget(Prot(PAPER, 0.1), 1.0, 0.0).left == 10
        assert Budget(Prot(PAPER, 0.1), 1.0, 1e-4).left > 10

    @pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (1.0, 1.0), (1.0, -0.1)])
    def test_bad_promises(self, epsilon, delta):
        with pytest.raises(ValueError, match="epsilon, delta = "):
            Budget(Prot(PAPER, 0.5), epsilon, delta)


def test_bad_arguments():
    prot = Prot(PAPER, 0.5)
    with pytest.raises(ValueError, match=r"delta = 1: needs a number from 0, below 1"):
        spent_epsilon(prot, 1, 1)
    with pytest.raises(ValueError, match="reports = -1: needs a whole number from 0"):
        spent_delta(prot, -1, 1.0)
    with pytest.raises(ValueError, match="protocol = a str: needs Cash, or one of Prot, Blank"):
        spent_delta("prot", 1, 1.0)
    with pytest.raises(ValueError, match="protocol = a str: needs Cash, or one of Prot, Blank"):
        Budget("prot", 1.0, 0.0)
    assert spent_epsilon(prot, 0, 0.0) == 0


@pytest.mark.parametrize(
    "wrong",
    [{"epsilon": -1.0}, {"epsilon": math.nan}, {"each": 0.0}, {"each": math.nan}, {"reports": 2.5}],
)
def test_bad_arguments_of_a_response(wrong):
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))} = "):
        response_delta(**{"epsilon": 1.0, "each": 1.0, "reports": 2, **wrong})
