"""The randomizer of answers, denials and blanks: its promise, in fractions, and what it tells."""

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from ldpcash.privacy.answers import _BENT, MOST_EPSILON, WORDS, Answers, share

EPSILONS = (1e-6, 0.1, 0.25, 0.5, 0.9, 1.0, math.log(3), 1.5, 2.0, 4.0, 8.0, 20.0, 40.0)
SHAPES = [(1, (0,), ()), (1, (0,), (0,)), (2, (0,), ()), (4, _BENT, ()), (4, _BENT, _BENT)]
SHAPES += [(3, (0,), (0,)), (7, (0,), ()), (12, (0,), ())]


def laws(answers):
    """What is sent by an item with the value 0, by one with the value 1, and by an empty client.

    Exactly, from the coins: own values are drawn as a word modulo their number.
    """
    answer, true, deny, denies = (Fraction(coin, WORDS) for coin in answers.coins)
    g = answers.values
    rows = []
    for value in (0, 1):
        row = [answer / g] * g + [deny / g] * g
        for start, own, mass in ((0, answers.own, true), (g, answers.denied, denies)):
            for place, offset in enumerate(own):
                words = WORDS // len(own) + (place < WORDS % len(own))
                row[start + (value ^ offset)] += mass * Fraction(words, WORDS)
            if not own:
                assert mass == 0
        rows.append(row)
    rows.append([answer / g] * g + [(1 - answer) / g] * g)
    return rows


@pytest.mark.parametrize(("width", "own", "denied"), SHAPES)
def test_no_odds_exceed_e_to_epsilon(width, own, denied, subtests):
    """All pairs of inputs and all messages, in fractions."""
    for epsilon in EPSILONS:
        answers = Answers(epsilon, width, own, denied)
        if min(answers.coins) < 0:
            continue
        with subtests.test(epsilon=epsilon), decimal.localcontext(prec=60):
            rows = laws(answers)
            assert all(sum(row) == 1 for row in rows)
            odds = max(max(column) / min(column) for column in zip(*rows, strict=True))
            limit = Decimal(epsilon).exp()
            assert Decimal(odds.numerator) / odds.denominator <= limit
            if epsilon >= 0.1:  # and hardly less, or it would be noise for nothing
                assert odds >= 1 + (Fraction(limit) - 1) * (1 - Fraction(1, 10**6))


def test_a_mixture_that_is_not_possible_is_never_chosen():
    for epsilon in EPSILONS:
        for frequency in (0.0, 0.3, 1.0):
            best = Answers.best(epsilon, range(1, 13), frequency)
            assert 0 < best.answering <= 1
            assert min(best.coins) >= 0


@pytest.mark.parametrize(("width", "own", "denied"), SHAPES)
def test_what_it_tells_is_the_divergence_of_its_laws(width, own, denied):
    """The mutual information of one message and a uniform value, from the laws themselves."""
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        answers = Answers(epsilon, width, own, denied)
        if not 0 < answers.answering <= 1:
            continue
        one, _, empty = (np.array(row, dtype=float) for row in laws(answers))
        g = answers.values
        number = np.arange(g)
        moved = [[*one[:g][number ^ v], *one[g:][number ^ v]] for v in range(g)]
        for f in (0.01, 0.3, 1.0):
            rows = f * np.array(moved) + (1 - f) * empty
            mean = rows.mean(axis=0)
            told = (rows * np.log(rows / mean)).sum(axis=1).mean()
            assert answers.told(f) == pytest.approx(2 * told / f**2, rel=1e-5)
        assert answers.told(0.0) == pytest.approx(answers.told(1e-7), rel=1e-5)


def test_a_bent_set_is_heard_equally_well_in_all_sums():
    answer, _ = Answers(1.0, 4, _BENT).sums()
    assert set(np.abs(answer[1:]).tolist()) == {2.0}
    assert set(Answers(1.0, 3).sums()[0].tolist()) == {1.0}


def test_known_values():
    """The table of the blank family: squared signal-to-noise ratios at e^eps for g = 3, 4, 8 are
    .34, 2.7 and 40; subset selection with half of the values own has (E - 1)^2 / (4 E)."""
    assert Answers(2.0, 2).told(0.0) == pytest.approx(2.688, abs=1e-3)
    assert Answers(4.0, 3).told(0.0) == pytest.approx(40.16, abs=1e-2)
    half = Answers(0.5, 1, (0,), (0,))
    assert half.told(0.0) == pytest.approx(math.expm1(0.5) ** 2 / (4 * math.exp(0.5)), rel=1e-12)
    assert share(1.0, 1.0, answers=True).told(1.0, 0.0) == pytest.approx(0, abs=1e-15)


def test_wrong_arguments():
    for epsilon in (0, -1, 1e-13, math.nan, MOST_EPSILON + 1, 1e18, "2"):
        with pytest.raises(ValueError, match="epsilon = "):
            Answers(epsilon, 2)
    for width in (0, 13, 1.5):
        with pytest.raises(ValueError, match="width = "):
            Answers(1.0, width)
    for own in ((), (0, 0), (5,), (0.5,), 3, (0, 1, 2, 3)):
        with pytest.raises(ValueError, match="own = "):
            Answers(1.0, 2, own)
    assert hash(Answers(1.0, 2, [1])) == hash(Answers(1.0, 2, (1,)))
    with pytest.raises(ValueError, match="frequency = 2"):
        Answers.best(1.0, range(1, 3), 2)
