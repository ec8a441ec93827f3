"""Arrays of bits and numbers: what passes, as what, and what is said of the rest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpcash.base.arrays import (
    as_bits,
    as_holds,
    as_items,
    as_reals,
    batches,
    bits_of,
    plus_or_minus,
    sum_halves,
)


class TestBits:
    def test_refuses_a_uint8_that_is_not_a_bit(self):
        with pytest.raises(ValueError, match=r"^bits\[1\] is neither 0 nor 1"):
            as_bits("bits", np.array([0, 2], dtype=np.uint8), 2)

    def test_uint8_is_not_copied(self):
        bits = np.array([0, 1], dtype=np.uint8)
        assert as_bits("bits", bits, 2) is bits

    @given(st.integers(1, 64), st.data())
    def test_of_a_number_most_significant_first(self, k, data):
        numbers = data.draw(st.lists(st.integers(0, 2**k - 1), min_size=1, max_size=5))
        bits = bits_of(np.array(numbers, dtype=np.uint64), k)
        assert bits.dtype == np.uint8
        assert ["".join(map(str, row)) for row in bits] == [f"{x:0{k}b}" for x in numbers]

    def test_of_any_type_that_has_room(self):
        for kind in (np.uint8, np.int16, np.uint32, np.int64, np.uint64):
            assert bits_of(np.array([5, 2], dtype=kind), 3).tolist() == [[1, 0, 1], [0, 1, 0]]
        assert bits_of(np.uint64(2**63 - 1), 63).tolist() == 63 * [1]
        assert bits_of(np.empty(0, int), 3).shape == (0, 3)

    def test_as_signs(self):
        for ones in (np.array([[1, 0]], dtype=np.uint8), np.array([[True, False]])):
            signs = plus_or_minus(ones)
            assert (signs.dtype, signs.tolist()) == (np.int8, [[1, -1]])
        strided = np.arange(12, dtype=np.uint8).reshape(3, 4).T % 2
        assert (plus_or_minus(strided) == np.where(strided, 1, -1)).all()
        assert strided.max() == 1  # left as it was


class TestChecks:
    def test_items(self):
        assert as_items([[1, 0], [True, 1]], 2).dtype == np.uint8
        for bits, message in [
            ([1, 0, 1], r"bits has shape \(3,\): needs a row of k bits for each item"),
            (np.zeros((2, 2, 3)), r"bits has shape \(2, 2, 3\): needs a row of k bits"),
            ([[1, 0]], r"bits has shape \(1, 2\): the last dimension must be 3"),
            ([[1, 0, 2]], r"bits\[0, 2\] is neither 0 nor 1: only 0 and 1 are bits"),
        ]:
            with pytest.raises(ValueError, match=f"^{message}"):
                as_items(bits, 3)

    def test_holds(self):
        assert as_holds([True, False], 2).dtype == np.bool_
        for holds, told in [
            ([True], r"\(1,\) and type bool"),
            ([1, 0], r"\(2,\) and type int64"),
            (True, r"\(\) and type bool"),
            ([[True, False]], r"\(1, 2\) and type bool"),
        ]:
            with pytest.raises(
                ValueError,
                match=rf"^holds has shape {told}: needs True or False for each of 2 clients$",
            ):
                as_holds(holds, 2)

    def test_reals(self):
        for kind in (np.float16, np.float64, np.int8, np.uint64, bool):
            assert as_reals("y", np.ones((3, 2), kind), 2).dtype == np.float64
        single, double = np.ones(2, np.float32), np.ones(2)
        assert as_reals("y", single, 2) is single
        assert as_reals("y", double, 2) is double
        for values, message in [
            (1.0, r"y has shape \(\): the last dimension must be n = 2"),
            (np.ones((2, 3)), r"y has shape \(2, 3\): the last dimension must be n = 2"),
            ([1, 1j], "y has type complex128: needs real numbers"),
            (["1", "2"], "y has type <U1: needs real numbers"),
            ([None, 1.0], "y has type object: needs real numbers"),
        ]:
            with pytest.raises(ValueError, match=f"^{message}$"):
                as_reals("y", values, 2)


class TestBatches:
    @given(st.integers(0, 50), st.integers(-1, 60))
    def test_go_through_everything_once(self, total, size):
        parts = [list(range(total))[part] for part in batches(total, size)]
        assert [x for part in parts for x in part] == list(range(total))
        size = max(1, size)
        assert [len(part) for part in parts[:-1]] == [size] * (len(parts) - 1)
        assert all(1 <= len(part) <= size for part in parts)

    def test_end_where_the_array_does(self):
        assert [part.stop for part in batches(10, 4)] == [4, 8, 10]


@given(st.integers(0, 6), st.integers(0, 2**32))
def test_sums_by_halves_are_sums(m, seed):
    values = np.random.default_rng(seed).integers(-100, 100, (2**m, 3))
    before = values.copy()
    assert sum_halves(values).tolist() == values.sum(axis=0).tolist()
    assert (values == before).all()
