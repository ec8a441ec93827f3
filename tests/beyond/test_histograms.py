"""The comparison on names and words."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ldpcash.beyond.bodies import body
from ldpcash.beyond.histograms import (
    KNOWN,
    METHODS,
    NO_BLANK,
    OURS,
    PEERS,
    PEM,
    UNMIXED,
    Score,
    Setting,
    Trial,
    measure,
    recall_at,
    run_trial,
)

NAMES = Setting(OURS, "census", 40, 50_000, 3.0)


def test_the_census_is_as_published():
    names = body("census", 40)
    first = " ".join(names.packing.unpack(names.bits[:11]))
    assert first == (
        "JAMES JOHN ROBERT MICHAEL WILLIAM DAVID RICHARD CHARLES JOSEPH THOMAS CHRISTOP"
    )
    np.testing.assert_allclose(names.share[:3], [0.03318, 0.03271, 0.03143])
    assert names.share.sum() == pytest.approx(0.90052, abs=5e-4)
    assert len(names.bits) == 1216  # three of 1219 are the same as another in eight letters


@pytest.mark.parametrize("method", [m for m in METHODS if m != "TreeHist, by bits"])
def test_every_method_finds_frequent_names_and_few_others(method):
    """At epsilon = 4, and for Cash at 6, the first ten names stand out by far."""
    epsilon = 6.0 if "Cash" in method else 4.0
    [score] = measure([Setting(method, "census", 40, 1_000_000, epsilon)], trials=1, seed=1)
    assert score.recall(10)[0] == 1.0
    assert score.total.found >= score.total.top20 >= 10
    assert score.false_rate <= 0.25
    assert score.frequency_error < 0.005


def test_the_published_tree_finds_fewer_than_the_tuned_one():
    by_bits, tuned = measure(
        [Setting(m, "census", 40, 1_000_000, 4.0) for m in ("TreeHist, by bits", "TreeHist")], 2, 1
    )
    assert by_bits.true < tuned.true


@pytest.mark.parametrize(("name", "k"), [("english", 64), ("german", 128)])
def test_words_are_found_too(name, k):
    settings = [Setting(m, name, k, 1_000_000, 4.0) for m in (OURS, PEM, "Bitstogram", KNOWN)]
    assert [score.total.top10 for score in measure(settings, 1, 1)] == [10] * 4


def test_unmixed_items_are_found_too():
    [score] = measure([Setting(UNMIXED, "census", 40, 1_000_000, 4.0)], trials=1, seed=3)
    assert score.total.top20 == 20


def test_a_blank_finds_more_where_most_hold_nothing():
    settings = [Setting(m, "census", 40, 1_000_000, 3.0, crowd=0.9) for m in (OURS, NO_BLANK)]
    blank, plain = measure(settings, trials=3, seed=1)
    assert blank.true > plain.true


def test_the_number_of_workers_does_not_matter():
    setting = [NAMES, Setting(PEM, "census", 40, 50_000, 3.0)], 2, 3
    with ThreadPoolExecutor(2) as executor:
        assert measure(*setting, executor) == measure(*setting)
        assert recall_at(NAMES, 0.02, 2, 1, executor) == recall_at(NAMES, 0.02, 2, 1)
    assert measure(*setting) != measure(*setting[:-1], 4)


def test_a_stream_is_the_same_for_equal_numbers():
    again = Setting(PEM, "census", 40, np.int64(50_000), np.float64(3.0))
    assert run_trial(again, 1, 0) == run_trial(Setting(PEM, "census", 40, 50_000, 3), 1, 0)


def test_recall_grows_with_the_frequency():
    found = [recall_at(NAMES, frequency, 2, 1) for frequency in (0.004, 0.012, 0.04)]
    assert [of for _, of in found] == [20] * 3
    assert found[0][0] < found[1][0] < found[2][0] == 20


def test_a_score_adds_up():
    score = Score(NAMES, 2, Trial(15, 20, 24, 4, 19, 0.2))
    assert score.recall(10)[0] == 0.75
    assert score.recall(20)[0] == 0.5
    assert score.false_rate == pytest.approx(1 / 6)
    assert score.frequency_error == pytest.approx(0.01)
    assert score.coverage[0] == pytest.approx(0.95)
    nothing = Score(NAMES, 2, Trial(0, 0, 0, 0, 0, 0.0))
    assert nothing.false_rate == 0
    assert np.isnan([nothing.frequency_error, nothing.coverage[0]]).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"method": "symbol"}, "method = 'symbol': choose one of symbols; "),
        ({"body": "latin"}, "body = 'latin': choose one of census"),
        ({"k": 41}, "k = 41: choose one of 40, 64, 128"),
        ({"clients": 0}, "clients = 0: needs a whole number from 1"),
        ({"epsilon": -1}, "epsilon = -1: needs a"),
        ({"crowd": 1.0}, r"crowd = 1\.0: needs a number between 0 and 1"),
    ],
)
def test_wrong_settings(wrong, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        Setting(
            **{"method": OURS, "body": "census", "k": 40, "clients": 9, "epsilon": 1.0, **wrong}
        )


def test_other_wrong_arguments():
    with pytest.raises(ValueError, match="trials = 0: needs a whole number from 1"):
        measure([NAMES], 0, 1)
    with pytest.raises(ValueError, match="top = 5: choose one of 10, 20"):
        Score(NAMES, 2, Trial(15, 20, 24, 4, 19, 0.2)).recall(5)
    with pytest.raises(ValueError, match="method = 'PEM"):
        recall_at(Setting(PEM, "census", 40, 9, 1.0), 0.1, 1, 1)
    assert PEM in PEERS
