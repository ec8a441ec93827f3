"""The tree of a code against what its nodes say of the words that they stand for."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import codes

from ldpcash import PolarCode
from ldpcash.codec.textbook import codeword, frozen_bit
from ldpcash.codec.tree import Parities, tree


def patterns(max_m):
    """Which of 2**m bits are frozen, in any way."""
    return st.integers(0, max_m).flatmap(
        lambda m: st.lists(st.booleans(), min_size=2**m, max_size=2**m).map(np.array)
    )


def nodes(node):
    """A node and all below it."""
    return [node, *(found for half in node.children for found in nodes(half))]


@given(patterns(5), st.integers(0, 7), st.booleans())
def test_leaves_have_every_index_once_and_halves_are_halves(frozen, start, at_once):
    found = nodes(tree(frozen, start, free_at_once=at_once))
    leaves = [range(node.start, node.start + node.size) for node in found if not node.children]
    assert [i for leaf in leaves for i in leaf] == list(range(start, start + len(frozen)))
    for node in found:
        if node.children:
            left, right = node.children
            assert 2 * left.size == 2 * right.size == node.size
            assert (left.start, right.start) == (node.start, node.start + left.size)


@given(patterns(5), st.booleans())
def test_a_node_is_of_the_kind_that_its_frozen_bits_make(frozen, at_once):
    def plain(bits):
        if bits.all():
            return "frozen"
        return "repetition" if bits[:-1].all() else "other"

    for node in nodes(tree(frozen, free_at_once=at_once)):
        mine = frozen[node.start : node.start + node.size]
        kind = plain(mine)
        if kind == "other":
            left = plain(mine[: node.size // 2])
            halves = {"frozen": "frozen_half", "repetition": "repeated_half", "other": "two_halves"}
            assert node.halves == halves[left]
            kind = "free" if at_once and not mine.any() else node.halves
        assert node.kind == kind


@given(patterns(3))
def test_words_of_a_node_look_as_its_kind_says(frozen):
    """All words that the bits of a node can make, by trying all bits."""
    for node in nodes(tree(frozen)):
        mine = frozen[node.start : node.start + node.size]
        choices = product(*((0,) if fixed else (0, 1) for fixed in mine))
        words = np.array([codeword(list(u)) for u in choices])
        flips = words[:, : node.size // 2] ^ words[:, node.size // 2 :]  # between both halves
        constant = (flips == flips[:, :1]).all(axis=1)
        looks = {
            "frozen": not words.any(),
            "repetition": (words == words[:, :1]).all() and len(words) == 2,
            "free": len(np.unique(words, axis=0)) == 2**node.size,
            "frozen_half": not flips.any(),
            "repeated_half": constant.all() and flips.any(),
            "two_halves": not constant.all(),
        }
        assert looks[node.kind], node


@given(codes(max_m=5))
def test_dynamic_bits_are_known_where_they_are_decided_at_once(code):
    found = nodes(tree(code.frozen, dynamic=frozenset(code.dynamic)))
    told = [index for node in found for index in node.dynamic]
    assert sorted(told) == sorted(code.dynamic)
    for node in found:
        assert all(node.start <= index < node.start + node.size for index in node.dynamic)


@given(codes(max_m=7), st.integers(0, 2**32))
def test_parities_of_information_bits_are_the_dynamic_bits(code, seed):
    parities = Parities(code)
    u = np.random.default_rng(seed).integers(0, 2, code.n)
    u[code.frozen] = 0
    state = np.bitwise_xor.reduce(parities.columns[u == 1], axis=0)
    assert list(parities.place) == list(code.dynamic)
    for index, (word, bit) in parities.place.items():
        assert int(state[word]) >> bit & 1 == frozen_bit(code, u[:index].tolist())


def test_parities_beyond_one_word():
    code = PolarCode(256, [0], {index: [0] for index in range(1, 201)})
    parities = Parities(code)
    assert len(set(parities.place.values())) == 200
    assert np.bitwise_count(parities.columns).sum(axis=1).tolist() == [200] + 255 * [0]
