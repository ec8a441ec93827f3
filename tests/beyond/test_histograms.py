"""The comparison on real names."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ldpcash.beyond.census import (
    METHODS,
    PACKING,
    MethodScore,
    Trial,
    census_names,
    compare_methods,
    run_trial,
)


def test_the_census_is_as_published():
    names = census_names()
    first = " ".join(PACKING.unpack(names.bits[:11]))
    assert first == (
        "JAMES JOHN ROBERT MICHAEL WILLIAM DAVID RICHARD CHARLES JOSEPH THOMAS CHRISTOP"
    )
    np.testing.assert_allclose(names.share[:3], [0.03318, 0.03271, 0.03143])
    assert names.share.sum() == pytest.approx(0.90052, abs=5e-4)
    assert len(names.bits) == 1216  # three of 1219 are the same as another in eight letters


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_frequent_names_and_few_others(method):
    """At epsilon = 6 the first ten names stand out by 20 standard errors and more."""
    [score] = compare_methods([method], [1_000_000], [6.0], trials=1, seed=1)
    assert score.recall(10)[0] == 1.0
    assert score.total.found >= score.total.top20 >= 10
    assert score.false_rate <= 0.25
    assert score.frequency_error < 0.005


def test_the_number_of_workers_does_not_matter():
    setting = (["symbols, soft", "PEM + OLH"], [50_000], [3.0], 2, 3)
    with ThreadPoolExecutor(2) as executor:
        assert compare_methods(*setting, executor) == compare_methods(*setting)
    assert compare_methods(*setting) != compare_methods(*setting[:-1], 4)


@pytest.mark.parametrize(("clients", "epsilon"), [(50_000, 3), (np.int64(50_000), np.float64(3.0))])
def test_a_stream_is_the_same_for_equal_numbers(clients, epsilon):
    again = run_trial("PEM + OLH", clients, epsilon, 1, 0)
    assert again == run_trial("PEM + OLH", 50_000, 3.0, 1, 0)


def test_a_score_adds_up():
    score = MethodScore("x", 10, 1.0, 2, Trial(15, 20, 24, 4, 19, 0.2))
    assert score.recall(10)[0] == 0.75
    assert score.recall(20)[0] == 0.5
    assert score.false_rate == pytest.approx(1 / 6)
    assert score.frequency_error == pytest.approx(0.01)
    assert score.coverage == pytest.approx(0.95)
    nothing = MethodScore("x", 10, 1.0, 2, Trial(0, 0, 0, 0, 0, 0.0))
    assert nothing.false_rate == 0
    assert np.isnan([nothing.frequency_error, nothing.coverage]).all()


def test_wrong_arguments():
    with pytest.raises(ValueError, match="method = 'symbol': choose one of symbols, soft; "):
        compare_methods(["symbol"], [1000], [1.0], 1, 1)
    with pytest.raises(ValueError, match="trials = 0: needs a whole number from 1"):
        compare_methods(["symbols, soft"], [1000], [1.0], 0, 1)
    with pytest.raises(ValueError, match="top = 5: choose one of 10, 20"):
        MethodScore("x", 10, 1.0, 2, Trial(15, 20, 24, 4, 19, 0.2)).recall(5)
