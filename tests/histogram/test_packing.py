"""Strings to bits and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpcash.histogram.packing import LATIN, NO_LETTER, Packing


@given(st.lists(st.text(LATIN, max_size=8)))
def test_latin_strings_come_back(strings):
    packing = Packing(40, LATIN)
    bits = packing.pack(strings)
    assert bits.shape == (len(strings), 40)
    assert packing.unpack(bits) == strings


@given(
    st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4))
)
def test_any_text_comes_back(strings):
    packing = Packing(8 * 16 + 3)
    assert packing.unpack(packing.pack(strings)) == strings


def test_bits_are_as_documented():
    assert Packing(20, LATIN).pack(["BO"]).tolist() == [
        [0, 0, 0, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    ]
    assert Packing(17).pack(["A"])[0, :8].tolist() == [0, 1, 0, 0, 0, 0, 0, 1]  # 65


def test_the_order_of_the_alphabet_counts():
    assert Packing(4, "zyx").pack(["xz"]).tolist() == [[1, 1, 0, 1]]
    assert Packing(4, "zyx").unpack([[1, 1, 0, 1]]) == ["xz"]


def test_a_prefix_of_the_string_is_a_prefix_of_the_bits():
    names = Packing(40, LATIN)
    assert (names.pack(["JOHN"])[0, :20] == names.pack(["JOHNSON"])[0, :20]).all()


def test_long_strings_are_an_error_or_cut():
    with pytest.raises(ValueError, match="'CHRISTOPHER': k = 40 bits hold at most 8 letters"):
        Packing(40, LATIN).pack(["JOHN", "CHRISTOPHER"])
    cut = Packing(40, LATIN, cut=True)
    assert cut.unpack(cut.pack(["JOHN", "CHRISTOPHER"])) == ["JOHN", "CHRISTOP"]
    with pytest.raises(ValueError, match="at most 5 bytes"):
        Packing(40).pack(["ééé"])


def test_bits_that_are_no_letter_are_shown_so():
    assert Packing(10, LATIN).unpack([[0, 0, 0, 0, 0, 0, 0, 0, 0, 1]]) == [NO_LETTER + "A"]
    assert Packing(8).unpack(np.ones((1, 8), dtype=np.uint8)) == [NO_LETTER]
    inside = np.unpackbits(np.array([[65, 0, 66, 0]], dtype=np.uint8), axis=1)
    assert Packing(32).unpack(inside) == ["A" + NO_LETTER + "B"]  # and zeros at the end are its end


def test_a_single_string_is_not_its_letters():
    with pytest.raises(ValueError, match="strings = 'JOHN': needs a list of strings"):
        Packing(40, LATIN).pack("JOHN")


@pytest.mark.parametrize("strings", [["jo"], ["J\0"], [7], ["É"]])
def test_strange_letters_are_an_error(strings):
    with pytest.raises(ValueError, match="strings holds"):
        Packing(40, LATIN).pack(strings)


@pytest.mark.parametrize(
    "wrong",
    [{"k": 0}, {"k": 4, "alphabet": LATIN}, {"k": 8, "alphabet": "AA"}, {"k": 8, "alphabet": ""}],
)
def test_wrong_arguments(wrong):
    with pytest.raises(ValueError, match=r"k =|alphabet ="):
        Packing(**wrong)
