"""The mixing of items: a permutation that depends on its key, under which text looks random.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import FALSE_ALARM

from ldpcash.base.arrays import bits_of
from ldpcash.histogram.mixing import MOST_BITS, Mixing

WORD = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
LENGTHS = [*range(1, 71), 127, 128, 129, 130, 191, 192, 256, 257, 500, 999, MOST_BITS]
KEYS = st.integers(0, WORD)


def scrambled(word):
    """SplitMix64's last step, in whole numbers."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & WORD
    return word ^ word >> 31


def stream(bits, width, key):
    """As many bits as wanted, out of a hash of some bits; both as text of zeros and ones.

    Bytes are filled from their highest bit on, words from their lowest byte on.
    """
    state = key
    for start in range(0, len(bits), 64):
        eight = bits[start : start + 64].ljust(64, "0")
        word = int.from_bytes(int(eight, 2).to_bytes(8, "big"), "little")
        state = scrambled(state ^ scrambled(word + GOLDEN & WORD))
    out = ""
    for step in range(1, -(-width // 64) + 1):
        word = scrambled(state + step * GOLDEN & WORD)
        out += "".join(f"{byte:08b}" for byte in word.to_bytes(8, "little"))
    return out[:width]


def mixed(item, key):
    """One item, as text of zeros and ones, by hand: eight rounds."""
    start = scrambled(key + GOLDEN & WORD)
    halves = [item[: len(item) // 2], item[len(item) // 2 :]]
    for number in range(8):
        target, source = (number + 1) % 2, number % 2
        flips = stream(
            halves[source], len(halves[target]), scrambled(start + (number + 1) * GOLDEN & WORD)
        )
        halves[target] = "".join(
            str(int(a != b)) for a, b in zip(halves[target], flips, strict=True)
        )
    return "".join(halves)


@pytest.mark.parametrize("k", LENGTHS)
def test_it_is_what_eight_rounds_by_hand_give(k):
    rng = np.random.default_rng(k)
    items = rng.integers(0, 2, (3, k), dtype=np.uint8)
    key = int(rng.integers(0, 2**64, dtype=np.uint64))
    texts = ["".join(map(str, row)) for row in items.tolist()]
    found = ["".join(map(str, row)) for row in Mixing(k, key).mix(items).tolist()]
    assert found == [mixed(text, key) for text in texts]


@given(st.sampled_from(LENGTHS), KEYS, st.randoms(use_true_random=False))
def test_unmixed_is_as_before(k, key, random):
    items = np.array([[random.randrange(2) for _ in range(k)] for _ in range(4)], dtype=np.uint8)
    mixing, before = Mixing(k, key), items.copy()
    np.testing.assert_array_equal(mixing.unmix(mixing.mix(items)), items)
    np.testing.assert_array_equal(mixing.mix(mixing.unmix(items)), items)
    np.testing.assert_array_equal(items, before)  # what was given stays as it is


@pytest.mark.parametrize("k", range(1, 13))
@pytest.mark.parametrize("key", [0, 1, WORD])
def test_no_two_items_become_the_same(k, key):
    everything = bits_of(np.arange(2**k), k)
    assert len(np.unique(Mixing(k, key).mix(everything), axis=0)) == 2**k


def test_one_bit_more_or_less_changes_half_of_them():
    """Avalanche: each output bit is a fair coin, 1000 times for each of eight input bits.

    By Hoeffding's inequality, with a false-alarm rate of 1e-6.
    """
    rng = np.random.default_rng(5)
    for k in (16, 40, 128):
        items, mixing = rng.integers(0, 2, (1000, k), dtype=np.uint8), Mixing(k, 77)
        before = mixing.mix(items)
        changed = np.tile(items, (8, 1, 1))
        changed[np.arange(8), :, np.arange(8) * k // 8] ^= 1
        flips = mixing.mix(changed.reshape(-1, k)).reshape(8, 1000, k) ^ before
        ones = flips.sum(axis=1, dtype=np.intp)
        assert np.abs(ones - 500).max() < np.sqrt(500 * np.log(2 * 3 * ones.size / FALSE_ALARM))


def test_words_look_random_once_mixed():
    """Every bit, and every pair of them: as fair coins, by Hoeffding's inequality.

    Before, many bits are alike in all words. False-alarm rate 1e-6.
    """
    words = [f"{first}{second}".ljust(8, "\0") for first in "abcd" for second in range(1000)]
    items = np.unpackbits(np.frombuffer("".join(words).encode(), np.uint8)).reshape(4000, 64)
    assert (items.mean(axis=0) == 0).sum() > 20
    mixed_items = Mixing(64, 3).mix(items)
    signs = 2.0 * mixed_items - 1
    together = signs.T @ signs
    np.fill_diagonal(together, 0)
    sums = np.abs(np.concatenate([signs.sum(axis=0), together.ravel()]))
    assert sums.max() < np.sqrt(2 * 4000 * np.log(2 * sums.size / FALSE_ALARM))


@given(KEYS, KEYS)
def test_another_key_is_another_permutation(one, other):
    items = bits_of(np.arange(256), 64)
    same = (Mixing(64, one).mix(items) == Mixing(64, other).mix(items)).all(axis=1)
    assert same.all() if one == other else not same.any()


@pytest.mark.parametrize(
    ("k", "key", "message"),
    [
        (0, 1, "k = 0: needs a whole number from 1 to 1000"),
        (1001, 1, "k = 1001: needs"),
        (1.5, 1, "k = 1.5: needs"),
        (8, -1, "key = -1: needs a whole number from 0"),
        (8, 2**64, "key = 18446744073709551616: needs"),
    ],
)
def test_wrong_arguments(k, key, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        Mixing(k, key)


@pytest.mark.parametrize("items", [[0] * 8, [[0] * 7], [[2] * 8], [[[0] * 8]]])
def test_wrong_items(items):
    for function in (Mixing(8, 1).mix, Mixing(8, 1).unmix):
        with pytest.raises(ValueError, match=r"^bits"):
            function(items)
