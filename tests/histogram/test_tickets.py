"""Tickets: the PRF against its reference, and each ticket used at most once."""

import pickle
import secrets

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpcash.histogram.tickets import (
    MOST_TICKETS,
    TICKET,
    Tickets,
    as_tickets,
    genuine,
    pseudorandom,
)

KEY = bytes(range(16))
WORD = 2**64 - 1


def sip_hash(key, message, after_block=2, in_the_end=4):
    """SipHash-2-4 of any message, in whole numbers, as in the paper of Aumasson and Bernstein."""

    def turned(word, count):
        return (word << count | word >> 64 - count) & WORD

    def rounds(v0, v1, v2, v3, count):
        for _ in range(count):
            v0, v2 = v0 + v1 & WORD, v2 + v3 & WORD
            v1, v3 = turned(v1, 13) ^ v0, turned(v3, 16) ^ v2
            v0 = turned(v0, 32)
            v2, v0 = v2 + v1 & WORD, v0 + v3 & WORD
            v1, v3 = turned(v1, 17) ^ v2, turned(v3, 21) ^ v0
            v2 = turned(v2, 32)
        return v0, v1, v2, v3

    k0, k1 = (int.from_bytes(key[i : i + 8], "little") for i in (0, 8))
    text = b"somepseudorandomlygeneratedbytes"
    constants = [int.from_bytes(text[i : i + 8], "big") for i in range(0, 32, 8)]
    v = [constant ^ half for constant, half in zip(constants, (k0, k1, k0, k1), strict=True)]
    padded = message + bytes(-(len(message) + 1) % 8) + bytes([len(message) % 256])
    for start in range(0, len(padded), 8):
        block = int.from_bytes(padded[start : start + 8], "little")
        v[3] ^= block
        v = list(rounds(*v, after_block))
        v[0] ^= block
    v[2] ^= 0xFF
    v0, v1, v2, v3 = rounds(*v, in_the_end)
    return v0 ^ v1 ^ v2 ^ v3


class TestPseudorandom:
    def test_the_slow_one_has_the_published_values(self):
        """`vectors_sip64` of the reference implementation: key 00 to 0f, messages 00, 01, ..."""
        known = {
            0: "310e0edd47db6f72",
            1: "fd67dc93c539f874",
            2: "5a4fa9d909806c0d",
            7: "37d1018bf50002ab",
            8: "6224939a79f5f593",
            15: "e545be4961ca29a1",  # the example of the paper
        }
        for length, value in known.items():
            found = sip_hash(KEY, bytes(range(length)))
            assert found.to_bytes(8, "little").hex() == value

    def test_the_published_value_of_a_word(self):
        word = int.from_bytes(bytes(range(8)), "little")
        assert hex(pseudorandom(KEY, np.array([word], np.uint64))[0]) == "0x93f5f5799a932462"

    @given(st.binary(min_size=16, max_size=16), st.lists(st.integers(0, WORD), max_size=5))
    def test_is_that_of_the_slow_one(self, key, words):
        found = pseudorandom(key, np.array(words, dtype=np.uint64)).tolist()
        assert found == [sip_hash(key, word.to_bytes(8, "little")) for word in words]

    def test_many_words_and_any_shape(self):
        words = np.random.default_rng(1).integers(0, 2**64, (3, 20_000), dtype=np.uint64)
        found = pseudorandom(KEY, words)
        assert found.shape == words.shape
        for place in ((0, 0), (0, 16_383), (0, 16_384), (2, 19_999)):
            assert int(found[place]) == sip_hash(KEY, int(words[place]).to_bytes(8, "little"))


class TestTickets:
    def test_numbers_go_on_and_seeds_are_theirs(self):
        tickets = Tickets(KEY, first=5)
        given = np.concatenate([tickets.issue(count) for count in (3, 0, 1, 2)])
        assert given.dtype == TICKET
        assert given["number"].tolist() == [5, 6, 7, 8, 9, 10]
        assert given["seed"].tolist() == [
            sip_hash(KEY, n.to_bytes(8, "little")) for n in range(5, 11)
        ]
        assert tickets.numbers == [range(5, 11)]

    def test_only_what_was_issued_here_is_genuine(self):
        tickets = Tickets(KEY, first=5)
        given = tickets.issue(3)
        earlier, later = Tickets(KEY).issue(5), Tickets(KEY, first=8).issue(2)
        assert tickets.genuine(given).all()
        for foreign in (earlier, later, Tickets(bytes(16), first=5).issue(3)):
            assert not tickets.genuine(foreign).any()
        for bit in range(64):  # a seed that was chosen
            chosen = given.copy()
            chosen["seed"] ^= np.uint64(1 << bit)
            assert not tickets.genuine(chosen).any()
        other_number = given[[1, 2, 0]].copy()
        other_number["seed"] = given["seed"]
        assert not tickets.genuine(other_number).any()
        assert genuine(KEY, [range(6), range(7, 9)], given).tolist() == [True, False, True]

    def test_each_counts_once_in_a_batch_and_between_batches(self):
        tickets = Tickets(KEY, first=100)
        tickets.issue(6)
        assert tickets.use([103, 101, 103, 103, 101]).tolist() == [True, True, False, False, False]
        assert tickets.use([101, 102, 102, 100]).tolist() == [False, True, False, True]
        assert tickets.use([]).tolist() == []
        tickets.issue(1)
        assert tickets.use([106, 103, 105]).tolist() == [True, False, True]

    def test_what_was_not_issued_is_never_used(self):
        tickets = Tickets(KEY, first=100)
        tickets.issue(6)
        assert not tickets.use([99, 106, 0, -1, 2**32]).any()
        assert tickets.use(range(100, 106)).all()

    @given(st.lists(st.lists(st.integers(0, 30), max_size=20), max_size=5))
    def test_is_what_a_set_would_say(self, batches):
        tickets, known = Tickets(KEY, first=3), set(range(3, 25))
        tickets.issue(22)
        for batch in batches:
            expected = []
            for number in batch:
                expected.append(number in known)
                known.discard(number)
            assert tickets.use(np.array(batch, dtype=np.uint32)).tolist() == expected

    def test_one_by_one_they_are_not_copied_each_time(self):
        """Memory grows by a fraction of itself, so a million take no longer than a byte each."""
        tickets = Tickets(KEY)
        [run] = tickets.runs.values()
        sizes = set()
        for _ in range(1000):
            tickets.issue(1)
            sizes.add(run.__sizeof__())
        assert tickets.numbers == [range(1000)]
        assert len(sizes) < 60
        assert run.__sizeof__() < 1.3 * 1000 + 100

    def test_the_last_number(self):
        tickets = Tickets(KEY, first=MOST_TICKETS - 2)
        assert tickets.issue(2)["number"].tolist() == [MOST_TICKETS - 2, MOST_TICKETS - 1]
        assert tickets.use([MOST_TICKETS - 1]).all()
        with pytest.raises(ValueError, match=r"^count = 1: needs a whole number from 0 to 0"):
            tickets.issue(1)

    def test_keys_are_random_unless_given(self, monkeypatch):
        asked = []
        monkeypatch.setattr(secrets, "token_bytes", lambda size: asked.append(size) or bytes(size))
        assert Tickets().key == bytes(16)
        assert asked == [16]

    @pytest.mark.parametrize("key", [b"", bytes(15), "0" * 16, bytearray(16), 7])
    def test_a_wrong_key_is_not_shown(self, key):
        with pytest.raises(ValueError, match=r"^key has another form: needs 16 bytes$"):
            Tickets(key)

    @pytest.mark.parametrize("first", [-1, MOST_TICKETS + 1, 0.5])
    def test_wrong_numbers(self, first):
        with pytest.raises(ValueError, match=f"^first = {first}: needs a whole number from 0"):
            Tickets(KEY, first)
        with pytest.raises(ValueError, match=r"^count = -1: needs a whole number from 0"):
            Tickets(KEY).issue(-1)

    @pytest.mark.parametrize(
        "tickets",
        [np.arange(3), np.zeros((2, 2), TICKET), np.zeros((), TICKET), [(1, 2)], None],
    )
    def test_what_is_no_row_of_tickets(self, tickets):
        with pytest.raises(
            ValueError, match=r"^tickets has shape .* and type .*: needs one ticket"
        ):
            as_tickets(tickets)


class TestSums:
    def test_two_servers_with_one_key(self):
        one, other = Tickets(KEY), Tickets(KEY, first=3)
        mine, others = one.issue(3), other.issue(2)
        assert not one.genuine(others).any()
        assert not other.genuine(mine).any()
        one.use([1])
        other.use([4])
        for both in (one + other, other + one, pickle.loads(pickle.dumps(other)) + one):
            assert both.numbers == [range(3), range(3, 5)]
            assert both.genuine(np.concatenate([mine, others])).all()
            assert both.use([0, 1, 3, 4, 4, 0]).tolist() == [True, False, True, False, False, False]
        assert one.use([0, 1]).tolist() == [True, False]  # a sum has its own memory

    def test_a_third_server_s_tickets_between_them_stay_its_own(self):
        low, high, third = Tickets(KEY), Tickets(KEY, first=10**9), Tickets(KEY, first=1000)
        for tickets in (low, high, third):
            tickets.issue(3)
        both = low + high
        assert sum(map(len, both.runs.values())) == 6  # and no byte for each number between
        assert not both.genuine(third.issue(1)).any()
        assert (both + third).numbers == [range(3), range(1000, 1004), range(10**9, 10**9 + 3)]

    def test_a_sum_issues_no_number_twice(self):
        one, other = Tickets(KEY), Tickets(KEY, first=5)
        one.issue(3)
        other.issue(1)
        both = one + other
        assert both.issue(2)["number"].tolist() == [3, 4]
        with pytest.raises(ValueError, match=r"^count = 1: needs a whole number from 0 to 0"):
            both.issue(1)
        assert (other + one).issue(1)["number"].tolist() == [6]

    @pytest.mark.parametrize(("first", "count"), [(0, 3), (2, 5), (1, 1), (0, 1)])
    def test_numbers_that_two_issued_are_refused(self, first, count):
        one, other = Tickets(KEY), Tickets(KEY, first)
        one.issue(3)
        other.issue(count)
        for pair in ((one, other), (other, one)):
            with pytest.raises(ValueError, match=f"^other = .* number {first} was issued in both"):
                pair[0] + pair[1]

    def test_one_that_issued_nothing_changes_nothing(self):
        one = Tickets(KEY)
        one.issue(3)
        one.use([2])
        for other in (Tickets(KEY), Tickets(KEY, first=3)):
            for both in (one + other, other + one):
                assert both.use([0, 1, 2]).tolist() == [True, True, False]

    def test_another_key(self):
        with pytest.raises(ValueError, match=r"^other = tickets of another key"):
            Tickets(KEY) + Tickets()
