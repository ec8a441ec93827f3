"""Arguments: what passes, as what, and what is said of the rest."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from ldpcash.base.checks import fraction, one_of, positive, real_number, whole_number

NO_NUMBERS = ["1", None, True, np.True_, 1j, [1], np.array([1, 2]), Decimal(1)]
HUGE = 10**400  # beyond all floats


def test_numbers_of_any_kind_become_plain_ones(subtests):
    for value in (3, 3.0, np.int8(3), np.uint64(3), np.float32(3), Fraction(3)):
        with subtests.test(value=value):
            assert type(whole_number("x", value, 0)) is int
            for check in (real_number, positive):
                assert (type(check("x", value)), check("x", value)) == (float, 3.0)
            assert type(fraction("x", value / 4 if value else value)) is float


@pytest.mark.parametrize(
    "check", [lambda name, x: whole_number(name, x, 0), real_number, positive, fraction]
)
def test_what_is_no_number_is_named(check, subtests):
    for value in NO_NUMBERS:
        with (
            subtests.test(value=value),
            pytest.raises(ValueError, match=r"^x = [\s\S]*: needs a "),
        ):
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


class TestChoices:
    def test_what_is_among_them_comes_back(self):
        assert one_of("x", "b", ["a", "b"]) == "b"
        assert one_of("x", "b", {"a": 1, "b": 2}) == "b"
        assert one_of("x", 10, (10, 20)) == 10

    def test_what_is_not_is_told_them(self):
        for value in ("c", "", None, 1, math.nan, ("a",)):
            with pytest.raises(ValueError, match=r"^x = .*: choose one of a, b$"):
                one_of("x", value, ["a", "b"])
        with pytest.raises(ValueError, match=r"^top = 5: choose one of 10, 20$"):
            one_of("top", 5, (10, 20))

    def test_what_cannot_be_looked_up_or_compared_is_not_among_them(self):
        for value in (["a"], {"a": 1}, {"a"}, np.array("a"), np.array(["a", "b"])):
            with pytest.raises(ValueError, match=r"^x = .*: choose one of a, b$"):
                one_of("x", value, ["a", "b"])
            with pytest.raises(ValueError, match=r"^x = .*: choose one of a, b$"):
                one_of("x", value, {"a": 1, "b": 2})

    def test_names_with_commas_are_kept_apart_by_semicolons(self):
        with pytest.raises(ValueError, match=r"^x = 'a': choose one of a, soft; a, hard; b$"):
            one_of("x", "a", ["a, soft", "a, hard", "b"])
