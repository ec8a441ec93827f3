"""The paper's experiments as points, and where their curves cross a rate."""

import math

import pytest

from ldpcash.paper.experiments import READINGS, crossing, curves, up_to
from ldpcash.simulation.points import Point
from ldpcash.simulation.trials import Row, Tally


def curve(*errors, trials=10_000):
    """Rows at epsilon = 1, 2, ... with so many errors each."""
    point = {"protocol": "Cash", "frequency": 0.6, "clients": 1000}
    return [
        Row.of(Point(epsilon=1.0 + i, **point), Tally(trials, count))
        for i, count in enumerate(errors)
    ]


def test_a_crossing_is_where_the_line_between_two_points_crosses():
    assert crossing(curve(1000, 10), 1e-2) == pytest.approx(1.5)  # 0.1 and 0.001, in logarithms
    assert crossing(curve(5000, 1000, 10), 0.1) == pytest.approx(2)
    assert crossing(curve(1000, 100, 10), 5e-3) == pytest.approx(2 + math.log(2) / math.log(10))


@pytest.mark.parametrize("errors", [(5000, 4000), (10, 5), (1000, 0)])
def test_a_crossing_that_is_not_known(errors):
    """The curve ends above, starts below, or falls to a rate that was not seen."""
    assert crossing(curve(*errors), 1e-2) is None


def test_a_grid_ends_where_a_curve_does():
    assert up_to(2.0, [0.5, 1.0, 2.0, 2.5]) == [0.5, 1.0, 2.0]


def test_every_reading_needs_its_epsilons():
    epsilons = {name: [1.0] for name in READINGS if name != "Prot, ML"}
    with pytest.raises(ValueError, match=r"epsilons has no \['Prot, ML'\]: needs every name"):
        curves(READINGS, epsilons, 1, min_errors=10, max_trials=100)
