"""Arguments that must be numbers: what passes, as what, and what is said of the rest."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from ldpcash.base.checks import fraction, positive, real_number, whole_number

NO_NUMBERS = ["1", None, True, np.True_, 1j, [1], np.array([1, 2]), Decimal(1)]
HUGE = 10**400  # beyond all floats


@pytest.mark.parametrize("value", [3, 3.0, np.int8(3), np.uint64(3), np.float32(3), Fraction(3)])
def test_numbers_of_any_kind_become_plain_ones(value):
    assert type(whole_number("x", value, 0)) is int
    for check in (real_number, positive):
        assert (type(check("x", value)), check("x", value)) == (float, 3.0)
    assert type(fraction("x", value / 4 if value else value)) is float


@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
@pytest.mark.parametrize(
    "check", [lambda name, x: whole_number(name, x, 0), real_number, positive, fraction]
)
def test_what_is_no_number_is_named(check, value):
    with pytest.raises(ValueError, match=r"^x = [\s\S]*: needs a "):
        check("x", value)


@pytest.mark.parametrize(
    ("check", "wrong", "sentence"),
    [
        (
            lambda x: whole_number("x", x, 1),
            [0, 0.5, math.inf, math.nan, -HUGE],
            "whole number from 1",
        ),
        (lambda x: whole_number("x", x, 1, 9), [0, 10, HUGE], "whole number from 1 to 9"),
        (lambda x: real_number("x", x), [math.inf, math.nan, HUGE, -HUGE], "finite number"),
        (lambda x: real_number("x", x, 0), [-1e-9, math.inf], "number from 0"),
        (lambda x: real_number("x", x, 0, 1), [-0.1, 1.1, math.nan], "number from 0 to 1"),
        (lambda x: real_number("x", x, most=3), [5, HUGE], "number to 3"),
        (lambda x: positive("x", x), [0, -1, math.inf, math.nan, HUGE], "positive number"),
        (lambda x: fraction("x", x), [0, 1, -1, math.nan, HUGE], "number between 0 and 1"),
    ],
)
def test_what_is_out_of_range_is_told_the_range(check, wrong, sentence):
    for value in wrong:
        with pytest.raises(ValueError, match=rf"^x = .*: needs a {sentence}$"):
            check(value)


def test_whole_numbers_may_be_beyond_all_floats():
    assert whole_number("x", HUGE, 0) == HUGE


def test_there_is_one_zero():
    assert math.copysign(1, real_number("x", -0.0)) == 1
