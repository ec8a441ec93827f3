"""Finite fields: their laws, by going through all elements."""

import numpy as np
import pytest

from ldpcash.codec.fields import PRIMITIVE, multiply, powers


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_laws_of_a_field(m):
    a, b, c = np.ogrid[: 2**m, : 2**m, : 2**m]
    np.testing.assert_array_equal(multiply(a, b, m), multiply(b, a, m))
    np.testing.assert_array_equal(
        multiply(multiply(a, b, m), c, m), multiply(a, multiply(b, c, m), m)
    )
    np.testing.assert_array_equal(multiply(a, b ^ c, m), multiply(a, b, m) ^ multiply(a, c, m))
    one = np.arange(2**m)
    np.testing.assert_array_equal(multiply(one, np.array(1), m), one)
    products = multiply(one[1:, None], one[None, 1:], m)  # division: each row has all elements
    np.testing.assert_array_equal(np.sort(products, axis=1), np.tile(one[1:], (2**m - 1, 1)))


def test_powers_are_all_elements_and_products_of_the_generator():
    for m in range(1, len(PRIMITIVE) + 1):
        found = powers(m)
        assert sorted(found.tolist()) == list(range(1, 2**m))
        np.testing.assert_array_equal(
            multiply(found[:-1], found[1:2] if m > 1 else found, m), found[1:]
        )
