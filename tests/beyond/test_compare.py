"""The fair comparison: what noise does, and where each protocol's eta lies."""

import math

import pytest
from strategies import PAPER

from ldpcash import gaussian_sigma, response_scale
from ldpcash.beyond.compare import CONTENDERS, Case, client_noise, smallest_frequencies
from ldpcash.paper.theory import strength_at, union_bound


def test_noise():
    assert client_noise("Cash", 1.0, 1e-5, 1.5) == gaussian_sigma(1.0, 1e-5, 1.5)
    assert client_noise("Prot, soft", 1.0) == response_scale(1.0)
    assert client_noise("Prot, hard", 1.0) == response_scale(1.0) * math.sqrt(math.pi / 2)
    with pytest.raises(ValueError, match="name = 'Prot': choose one of Cash"):
        client_noise("Prot", 1.0)
    with pytest.raises(ValueError, match="name = 'Prot': choose one of Cash"):
        Case("Prot", 1.0, 1000, 0.5)


@pytest.mark.parametrize("name", CONTENDERS)
def test_eta_is_where_the_noise_says(name):
    """The union bound is within a few percent of the truth at 1e-2, and 400 errors at each of three
    points leave a standard error below one percent: 5 percent is beyond 1e-6."""
    weights = PAPER.weight_distribution()
    snr = strength_at(lambda x: union_bound(weights, 64, x), 1e-2)
    expected = snr * client_noise(name, 2.0) / math.sqrt(4000)
    case = Case(name, 2.0, 4000, 0.97 * expected)
    [eta] = smallest_frequencies([case], 1e-2, 5, min_errors=400, max_trials=10**6)
    assert eta == pytest.approx(0.97 * expected, rel=0.05)


def test_what_is_not_found():
    cases = [
        Case("Cash", 0.1, 1000, 10.0),
        Case("Prot, soft", 2.0, 1000, 0.24),
        Case("Prot, soft", 2.0, 1000, 0.15),
        Case("Prot, soft", 2.0, 1000, 2.0),
    ]
    etas = smallest_frequencies(cases, 1e-2, 5, min_errors=50, max_trials=20_000)
    assert etas[0] is None  # all clients are not enough
    assert 0.2 < etas[1] < 0.26
    assert math.isnan(etas[2])  # looked for in the wrong place
    assert math.isnan(etas[3])
