"""Populations of names and words."""

import csv
import tomllib
import unicodedata
from collections import Counter
from fnmatch import fnmatch
from importlib.resources import files
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ldpcash.beyond.bodies import BODIES, LENGTHS, body, packing_for
from ldpcash.histogram.packing import LATIN, Packing
from ldpcash.histogram.plan import Plan
from ldpcash.histogram.population import draw_collector

DATA = files("ldpcash.beyond") / "data"


def table(name):
    source = BODIES[name]
    with (DATA / source.file).open(encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    return [(word, float(share) / source.whole) for word, share in rows]


def start_of(word, k):
    """As much of it as fits, by counting."""
    if k < 128:
        return word[: k // 5]
    while len(word.encode()) > 16:
        word = word[:-1]
    return word


@pytest.mark.parametrize(("name", "k"), list(product(BODIES, LENGTHS)))
def test_items_are_the_starts_of_words_added_up(name, k):
    wanted = Counter()
    for word, share in table(name):
        wanted[start_of(word, k)] += share
    names = body(name, k)
    strings = names.packing.unpack(names.bits)
    assert len(strings) == len(set(strings)) == len(wanted)
    assert names.bits.shape == (len(strings), k)
    np.testing.assert_allclose(names.share, [wanted[string] for string in strings], rtol=1e-12)
    assert (np.diff(names.share) <= 0).all()
    assert names.empty == pytest.approx(1 - sum(share for _, share in table(name)))


@pytest.mark.parametrize("name", ["english", "german"])
def test_tables_are_as_described(name):
    words, shares = zip(*table(name), strict=True)
    assert len(set(words)) == len(words) == 10_000
    assert list(shares) == sorted(shares, reverse=True)
    assert set("".join(words)) == set(BODIES[name].letters) - {"ß"}  # which wordfreq writes ss
    assert all(unicodedata.is_normalized("NFC", word) for word in words)
    assert (DATA / BODIES[name].file).stat().st_size < 250_000


def test_english_is_that_of_other_texts():
    """Of a million words of 1961, the Brown corpus, as Kučera and Francis counted them (1967).

    None of its texts is spoken, which makes more of some words, by up to a half.
    """
    brown = {"the": 69971, "of": 36411, "and": 28852, "to": 26149, "a": 23237, "in": 21341}
    names = body("english", 40)
    strings = names.packing.unpack(names.bits[:6])
    assert set(strings) == set(brown)
    for string, share in zip(strings, names.share, strict=False):
        assert share == pytest.approx(brown[string] / 1_014_232, rel=0.35)


def test_packings_are_those_a_user_would_choose():
    assert packing_for("census", 40) == Packing(40, LATIN, cut=True)
    for name in BODIES:
        assert [packing_for(name, k).longest for k in LENGTHS] == [8, 12, 16]
        assert [packing_for(name, k).width for k in LENGTHS] == [5, 5, 8]
    german = packing_for("german", 64)
    assert german.unpack(german.pack(["straße", "u\u0308ber"])) == ["straße", "über"]


def test_the_most_frequent_words_are_found():
    """At epsilon = 6 the first five stand out by 40 standard errors and more."""
    names, clients, rng = body("german", 64), 1_000_000, np.random.default_rng(1)
    *counts, empty = rng.multinomial(clients, [*names.share, names.empty]).tolist()
    plan = Plan.choose(clients, 64, 6.0)
    lines = draw_collector(plan, names.bits, counts, rng, empty).histogram(names.packing)
    assert [line.item for line in lines[:5]] == ["die", "der", "und", "in", "das"]


def test_read_once_and_not_to_be_written_to():
    names = body("census", 64)
    assert body("census", 64.0) is names
    for array in (names.bits, names.share):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_all_tables_are_installed():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["ldpcash"]
    for source in BODIES.values():
        assert any(fnmatch(f"beyond/data/{source.file}", pattern) for pattern in patterns)


@pytest.mark.parametrize(
    ("name", "k", "message"),
    [
        ("dutch", 40, "name = 'dutch': choose one of census, english, german"),
        (["german"], 40, r"name = \['german'\]: choose one of"),
        ("german", 41, "k = 41: choose one of 40, 64, 128"),
        ("german", "40", "k = '40': choose one of 40, 64, 128"),
    ],
)
def test_wrong_arguments(name, k, message):
    for function in (body, packing_for):
        with pytest.raises(ValueError, match=f"^{message}"):
            function(name, k)
