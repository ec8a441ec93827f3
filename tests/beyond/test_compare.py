"""The fair comparison: what noise does, where an eta lies, and what a report costs."""

import math

import pytest

from ldpcash import gaussian_sigma, response_scale, sweep
from ldpcash.beyond.compare import (
    CONTENDERS,
    Case,
    client_noise,
    cost,
    smallest_frequencies,
    snr_needed,
)


def test_noise():
    assert client_noise("Cash", 1.0, 1e-5, 1.5) == gaussian_sigma(1.0, 1e-5, 1.5)
    assert client_noise("Prot, soft", 1.0) == response_scale(1.0)
    assert client_noise("Prot, hard", 1.0) == response_scale(1.0) * math.sqrt(math.pi / 2)
    # Wang et al. 2017, table 1: the deviation of a frequency of optimal local hashing.
    three = math.log(3)  # where e^eps + 1 values are a whole number
    assert client_noise("local hashing", three) == pytest.approx(2 * math.sqrt(3) / 2, rel=0.003)
    with pytest.raises(ValueError, match="name = 'Prot': choose one of Cash"):
        client_noise("Prot", 1.0)
    with pytest.raises(ValueError, match="name = 'Prot': choose one of Cash"):
        Case("Prot", 1.0, 1000)


@pytest.mark.parametrize("name", CONTENDERS)
def test_eta_is_where_the_noise_says(name):
    """At epsilon = 1 and N = 40,000 some hundred clients hold the item, or some thousand, so the
    formula holds but for the union bound (a few percent) and the noise of holders, which is that
    much for k-ary response only: 8 percent. Chance, of 200 errors at each of two points, has a
    standard error of one percent: 8 percent is beyond 1e-6."""
    case = Case(name, 1.0, 40_000, 1e-2)
    [eta] = smallest_frequencies([case], 5, min_errors=200, max_trials=10**5)
    assert eta is not None
    assert eta == pytest.approx(case.expected, rel=0.2 if name == "k-ary response" else 0.08)


def test_the_code_of_each():
    """The Hadamard code's words are a simplex: it needs less than any other code of 8 bits."""
    assert snr_needed("Blank", 1e-3) < snr_needed("Cash", 1e-3) == snr_needed("Prot, hard", 1e-3)
    with pytest.raises(ValueError, match="name = 'Prot': choose one of Cash"):
        snr_needed("Prot", 1e-3)


def test_what_is_not_found():
    cases = [Case("Cash", 0.1, 1000), Case("Prot, soft", 2.0, 1000, 1e-4)]
    assert cases[0].expected > 1
    none, unseen = smallest_frequencies(cases, 5, min_errors=5, max_trials=500)
    assert none is None  # all clients are not enough
    assert unseen is not None
    assert math.isnan(unseen)  # 500 trials do not show a rate of 1e-4


def test_few_holders_are_counted_one_by_one():
    """With noise of almost none, one holder is enough; with a little, some."""
    cases = [Case("Blank", 15.0, 200, 1e-1), Case("Blank", 6.0, 1000, 1e-2)]
    one, some = smallest_frequencies(cases, 5, min_errors=50, max_trials=5_000)
    assert one == 1 / 200
    assert some is not None
    held = round(some * 1000)
    assert some == held / 1000
    assert 2 <= held <= 30
    # At this count the rate is below the level, and with one holder less it is above.
    rate = {n: _rate(cases[1].point(n)) for n in (held - 1, held)}
    assert rate[held] <= 1e-2 < rate[held - 1]


def _rate(point):
    [row] = sweep([point], 5, min_errors=50, max_trials=5_000)
    return row.rate


def test_the_search_goes_as_far_as_it_must():
    """k-ary response at a large epsilon has most of its noise from holders: twice the expected."""
    case = Case("k-ary response", 4.0, 300, 1e-2)
    [eta] = smallest_frequencies([case], 5, min_errors=50, max_trials=10_000)
    assert eta is not None
    assert eta > 1.2 * case.expected


@pytest.mark.parametrize(
    ("name", "bits", "added"),
    [
        ("Cash", 64 * 32, 64),  # the codeword in single precision
        ("Prot, hard", 7, 1),  # one of 64 coordinates, and a sign
        ("k-ary response", 8, 1),  # an item
        ("subset selection", 212, 69),  # 69 of 256, of which there are 3.6e63
        ("local hashing", 66, 256),  # a seed, and one of four values
        ("Blank", 9, 1),  # one of 128 views, and one of three values or blank
    ],
)
def test_cost(name, bits, added):
    assert cost(name, 1.0) == (bits, added)
    with pytest.raises(ValueError, match="name = 'Prot': choose one of Cash"):
        cost("Prot", 1.0)
