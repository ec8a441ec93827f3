"""Strings to bits and back."""

import json
import pickle
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpcash.histogram.packing import LATIN, NO_LETTER, Packing

CHARACTERS = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
MARKS = st.sampled_from("\u0301\u0323\u093f\ufe0f")


@given(st.lists(st.text(LATIN, max_size=8)))
def test_latin_strings_come_back(strings):
    packing = Packing(40, LATIN)
    bits = packing.pack(strings)
    assert bits.shape == (len(strings), 40)
    assert packing.unpack(bits) == strings


@given(st.lists(st.text(CHARACTERS, max_size=4)))
def test_any_text_comes_back_in_its_normal_form(strings):
    packing = Packing(8 * 64 + 3)
    normal = [unicodedata.normalize("NFC", string) for string in strings]
    assert packing.unpack(packing.pack(strings)) == normal


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
    with pytest.raises(ValueError, match=r"^strings\[1\] has 11 letters: .* hold at most 8 let"):
        Packing(40, LATIN).pack(["JOHN", "CHRISTOPHER"])
    cut = Packing(40, LATIN, cut=True)
    assert cut.unpack(cut.pack(["JOHN", "CHRISTOPHER"])) == ["JOHN", "CHRISTOP"]
    with pytest.raises(ValueError, match=r"^strings\[0\] has 6 bytes: .* at most 5 bytes"):
        Packing(40).pack(["ééé"])


class TestUnicode:
    @given(st.text(CHARACTERS | MARKS, max_size=4))
    def test_a_word_is_one_item_in_every_form(self, text):
        packing = Packing(8 * 64)
        forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD")]
        one, other = packing.pack(forms)
        assert (one == other).all()

    def test_alphabets_and_their_strings_may_be_in_any_form(self):
        composed, decomposed = "äöüß", "a\u0308o\u0308u\u0308ß"
        one, other = Packing(9, composed), Packing(9, decomposed)
        assert one == other
        assert other.alphabet == composed
        for word in ("üöä", "u\u0308o\u0308a\u0308"):
            assert other.pack([word]).tolist() == [[0, 1, 1, 0, 1, 0, 0, 0, 1]]
        with pytest.raises(ValueError, match=r"^alphabet = .*: needs letters, each once"):
            Packing(9, "äa\u0308")  # the same letter twice, in two forms
        with pytest.raises(ValueError, match=r"^alphabet = .*: needs letters, each once"):
            Packing(9, "\u212b\u00c5")  # the sign of the angstrom, and the letter that it is

    @pytest.mark.parametrize(
        ("k", "string", "start"),
        [
            (40, "éééé", "éé"),  # two bytes each: half of the third would fit
            (40, "ab€€", "ab€"),  # three
            (56, "a😀😀", "a😀"),  # four
            (56, "ae\u0301\u0323\u0323", "a"),  # two of the marks have no character with e
            (64, "ae\u0301\u0323\u0323", "aẹ\u0323\u0301"),
            (96, "किति", "किति"),
            (88, "किति", "कि"),  # a vowel sign is a mark, though its combining class is 0
            (40, "ab❤\ufe0f", "ab"),  # so does the sign that asks for colours
        ],
    )
    def test_a_cut_is_between_letters(self, k, string, start):
        packing = Packing(k, cut=True)
        assert packing.unpack(packing.pack([string])) == [start]

    def test_a_cut_in_an_alphabet_with_marks(self):
        packing = Packing(6, "ax\u0323", cut=True)
        assert packing.unpack(packing.pack(["aax\u0323", "ax\u0323x"])) == ["aa", "ax\u0323"]

    def test_a_letter_that_does_not_fit_alone_is_an_error(self):
        for k, string in [(8, "é"), (24, "😀"), (16, "x\u0323"), (16, "e" + 9 * "\u0301")]:
            with pytest.raises(ValueError, match=r"^strings\[1\] has a first letter that does not"):
                Packing(k, cut=True).pack(["a", string])

    @given(st.text(CHARACTERS | MARKS), st.integers(1, 20), st.sampled_from(["NFC", "NFD"]))
    def test_a_cut_takes_as_many_whole_letters_as_fit(self, text, size, form):
        letters = []
        for character in unicodedata.normalize("NFC", text):
            if letters and unicodedata.category(character)[0] == "M":
                letters[-1] += character
            else:
                letters.append(character)
        start = ""
        while letters and len((start + letters[0]).encode()) <= size:
            start += letters.pop(0)
        packing = Packing(8 * size, cut=True)
        if letters and not start:
            with pytest.raises(ValueError, match="has a first letter that does not fit"):
                packing.pack([unicodedata.normalize(form, text)])
        else:
            assert packing.unpack(packing.pack([unicodedata.normalize(form, text)])) == [start]


class Boaster(str):
    def __str__(self):
        return "WHO I AM"


class TestWhatIsTaken:
    @pytest.mark.parametrize(
        "strings",
        [
            ["RED", "TEA"],
            ("RED", "TEA"),
            (word for word in ["RED", "TEA"]),
            {"RED": 1, "TEA": 2},
            np.array(["RED", "TEA"]),
            np.array(["RED", "TEA"], dtype=object),
            [np.str_("RED"), "TEA"],
            [Boaster("RED"), "TEA"],
        ],
    )
    def test_strings_in_any_order_that_python_goes_through(self, strings):
        packing = Packing(15, LATIN)
        assert packing.unpack(packing.pack(strings)) == ["RED", "TEA"]

    def test_no_strings(self):
        for packing in (Packing(15, LATIN), Packing(16)):
            for strings in ([], iter([]), np.array([], dtype=str)):
                assert packing.pack(strings).shape == (0, packing.k)
            assert packing.unpack(packing.pack([""])) == [""]

    @pytest.mark.parametrize(
        ("strings", "message"),
        [
            ("JOHN", "strings is a single str: needs a list of strings"),
            (b"JOHN", "strings is a single bytes: needs"),
            (bytearray(b"JOHN"), "strings is a single bytearray: needs"),
            (np.array("JOHN"), "strings is a single ndarray: needs"),
            (None, "strings is a single NoneType: needs"),
            (["JO", b"JOHN"], r"strings\[1\] is no string, but bytes"),
            ([bytearray(b"JO")], r"strings\[0\] is no string, but bytearray"),
            (np.array([b"JO"]), r"strings\[0\] is no string, but bytes_"),
            (np.array([["JO", "JA"]]), r"strings\[0\] is no string, but ndarray"),
            ([["JO"]], r"strings\[0\] is no string, but list"),
            (["JO", None], r"strings\[1\] is no string, but NoneType"),
            ([7], r"strings\[0\] is no string, but int"),
            (["JO", "jo"], rf"strings\[1\] has a letter that is none of the alphabet '{LATIN}'"),
            (["É"], r"strings\[0\] has a letter that is none"),
            (["J\0"], r"strings\[0\] has NUL or half a surrogate pair: needs text"),
            (["\ud800"], r"strings\[0\] has NUL or half a surrogate pair: needs text"),
        ],
    )
    def test_what_is_no_list_of_strings(self, strings, message):
        with pytest.raises(ValueError, match=f"^{message}"):
            Packing(40, LATIN).pack(strings)

    def test_half_a_surrogate_pair_is_no_text(self):
        for packing in (Packing(80), Packing(8, cut=True)):
            with pytest.raises(ValueError, match=r"^strings\[1\] has NUL or half"):
                packing.pack(["a", "bc\udfff"])

    def test_strange_letters_behind_the_cut_are_an_error_too(self):
        with pytest.raises(ValueError, match="is none of the alphabet"):
            Packing(10, LATIN, cut=True).pack(["ABCé"])


SECRETS = [  # no three letters of them are in any message
    "xyzzy-4711-qjqj",
    "qa\u0308qqo\u0308vt-4711",
    "qwq\0jkj",
    "qwq\ud83djkj",
    "\u0e01" + 40 * "\u0e49",
    b"xyzzy-4711-qjqj",
    bytearray(b"xyzzy-4711-qjqj"),
    ["xyzzy-4711-qjqj"],
    471147114711,
]


def pieces(secret):
    """All three letters in a row, in each form, as they are and as Python shows them."""
    secret = secret[0] if isinstance(secret, list) else secret
    text = secret.decode() if isinstance(secret, (bytes, bytearray)) else str(secret)
    for form in ("NFC", "NFD"):
        normal = unicodedata.normalize(form, text)
        for part in (normal[start : start + 3] for start in range(len(normal) - 2)):
            yield from (part, repr(part)[1:-1], ascii(part)[1:-1])


@pytest.mark.parametrize("secret", SECRETS, ids=range(len(SECRETS)))
@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(
    "packing",
    [
        Packing(40, "ABCDEFGH"),
        Packing(10, "qjwkvtxyz-1247äö"),
        Packing(10, "qjwkvtxyz-1247äö", cut=True),
        Packing(64),
        Packing(64, cut=True),
    ],
    ids=str,
)
def test_no_error_gives_a_secret_away(packing, secret, alone):
    """Nor does one that it came from: Python shows that too."""
    error = None
    try:
        packing.pack(secret if alone else ["", secret])
    except ValueError as raised:
        error = raised
    if error is None:
        assert packing.cut
        return
    assert type(error) is ValueError  # a codec's would carry the string about
    told = f"{error!r} {error.__cause__!r} {error.__context__!r}"
    told = told.replace(repr(packing.alphabet), "")  # which is public
    assert not [part for part in pieces(secret) if part in told]


class TestPublicParameters:
    PACKINGS = (
        Packing(40),
        Packing(41),
        Packing(40, cut=True),
        Packing(40, LATIN),
        Packing(40, LATIN[::-1]),
        Packing(40, "äöü", cut=True),
    )

    def test_equal_if_all_of_them_are(self):
        assert len(set(self.PACKINGS)) == len(self.PACKINGS)
        assert Packing(40.0, LATIN, np.True_) == Packing(np.int64(40), LATIN, cut=True)
        assert Packing(40) != 40

    @pytest.mark.parametrize("packing", PACKINGS, ids=str)
    def test_they_come_back(self, packing):
        packing.pack(["" for _ in range(3)])  # whatever was done before
        public = packing.to_dict()
        assert list(public) == ["k", "alphabet", "cut"]
        assert json.loads(json.dumps(public)) == public
        again = Packing.from_dict(json.loads(json.dumps(public)))
        assert again == packing == pickle.loads(pickle.dumps(packing))
        assert hash(again) == hash(packing)
        assert (again.width, again.longest) == (packing.width, packing.longest)

    def test_plain_values_whatever_was_given(self):
        public = Packing(np.float64(40), np.str_("ab"), np.True_).to_dict()
        assert [type(value) for value in public.values()] == [int, str, bool]

    def test_they_do_not_change(self):
        with pytest.raises(AttributeError):
            Packing(40).k = 41

    @pytest.mark.parametrize(
        "public",
        [{"k": 40}, {"k": 40, "alphabet": None, "cut": False, "more": 1}, [40, None, False], None],
    )
    def test_all_of_them_and_no_other(self, public):
        with pytest.raises(ValueError, match=r"^public = .*: needs k, alphabet and cut, and noth"):
            Packing.from_dict(public)


def test_bits_that_are_no_letter_are_shown_so():
    assert Packing(10, LATIN).unpack([[0, 0, 0, 0, 0, 0, 0, 0, 0, 1]]) == [NO_LETTER + "A"]
    assert Packing(8).unpack(np.ones((1, 8), dtype=np.uint8)) == [NO_LETTER]
    inside = np.unpackbits(np.array([[65, 0, 66, 0]], dtype=np.uint8), axis=1)
    assert Packing(32).unpack(inside) == ["A" + NO_LETTER + "B"]  # and zeros at the end are its end


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"k": 4, "alphabet": LATIN},
        {"alphabet": "AA"},
        {"alphabet": ""},
        {"alphabet": "A\0"},
        {"alphabet": "A\ud800"},
        {"alphabet": ["A", "B"]},
        {"alphabet": b"AB"},
        {"cut": "no"},
        {"cut": None},
        {"cut": 2},
    ],
)
def test_wrong_arguments(wrong):
    with pytest.raises(ValueError, match=rf"^{next(iter(wrong))} = "):
        Packing(**{"k": 8, **wrong})
