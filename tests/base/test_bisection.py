"""Where conditions begin to hold, against where they were made to."""

import math

from hypothesis import assume, given
from hypothesis import strategies as st

from ldpcash.base.bisection import bisect, grow

floats = st.floats(-1e300, 1e300)


@given(st.sets(st.integers(), min_size=2, max_size=2), st.data())
def test_the_least_whole_number(ends, data):
    low, high = sorted(ends)
    least = data.draw(st.integers(low + 1, high))
    found = bisect(lambda x: x >= least, low, high)
    assert (type(found), found) == (int, least)


@given(st.lists(st.booleans(), max_size=20))
def test_a_condition_that_comes_and_goes_holds_there_and_not_just_before(middle):
    """By looking at all whole numbers between: a condition need not be monotone to be found."""
    holds = [False, *middle, True]
    found = bisect(holds.__getitem__, 0, len(holds) - 1)
    assert holds[found]
    assert not holds[found - 1]


@given(floats, floats, floats)
def test_the_least_float(low, least, high):
    assume(low < least <= high)
    assert bisect(lambda x: x >= least, low, high) == least


@given(st.floats(1e-300, 1e300), st.floats(0.5, 1), st.floats(1e-12, 0.5))
def test_close_is_close_enough_and_saves_the_rest(high, part, close):
    tried = []
    least = high * part
    found = bisect(lambda x: tried.append(x) or x >= least, 0.0, high, close)
    assert least <= found <= least + close * found
    assert len(tried) <= math.log2(2 / close) + 1


@given(st.integers(1, 10**6), st.integers(1, 100))
def test_doubling_ends_where_the_condition_holds(least, start):
    low, high = grow(lambda x: x >= least, start)
    assert low < least <= high
    assert (low, high) == (0, start) or high == 2 * low
    assert (high // start).bit_count() == 1
    assert bisect(lambda x: x >= least, low, high) == least


@given(st.floats(1e-9, 1e9), st.floats(1e-9, 1e9))
def test_doubling_floats(least, start):
    low, high = grow(lambda x: x >= least, start)
    assert low < least <= high
    assert (low, high) == (0, start) or high == 2 * low
    assert type(low) is float
    assert bisect(lambda x: x >= least, low, high) == least
