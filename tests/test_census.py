"""The comparison on real names."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ldpcash.beyond.census import METHODS, PACKING, Score, Trial, census_names, compare


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
    [score] = compare([method], [1_000_000], [6.0], trials=1, seed=1)
    assert score.recall(10)[0] == 1.0
    assert score.total.found >= score.total.top20 >= 10
    assert score.false_rate <= 0.25
    assert score.frequency_error < 0.005


def test_the_number_of_workers_does_not_matter():
    setting = (["symbols, soft", "PEM + OLH"], [50_000], [3.0], 2, 3)
    with ThreadPoolExecutor(2) as executor:
        assert compare(*setting, executor) == compare(*setting)
    assert compare(*setting) != compare(*setting[:-1], 4)


def test_a_score_adds_up():
    score = Score("x", 10, 1.0, 2, Trial(15, 20, 24, 4, 19, 0.2))
    assert score.recall(10)[0] == 0.75
    assert score.recall(20)[0] == 0.5
    assert score.false_rate == pytest.approx(1 / 6)
    assert score.frequency_error == pytest.approx(0.01)
    assert score.coverage == pytest.approx(0.95)
    nothing = Score("x", 10, 1.0, 2, Trial(0, 0, 0, 0, 0, 0.0))
    assert nothing.false_rate == 0
    assert np.isnan([nothing.frequency_error, nothing.coverage]).all()
