"""Bitstogram: counts against their exact law, words against the truth.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import numpy as np
import pytest
import scipy
from strategies import BITS, COUNTS, FALSE_ALARM, NAMES

from ldpcash.base.arrays import bits_of
from ldpcash.beyond.bitstogram import Bitstogram

ITEMS = bits_of([0b1011, 0b0010, 0b0111], 4)
HELD = np.array([60, 40, 20])


def captured(peer, how, trials, rng):
    """Counts of all groups' cells, then of three candidates in the end: ``(trials, ...)`` each."""
    cells, last = [], []

    def candidates(counts):
        cells.append(counts)
        return ITEMS

    peer._candidates = candidates
    peer._accept = lambda bits, counts, clients, packing: last.append(counts)
    who = np.append(np.repeat(np.arange(3), HELD), np.zeros(30, int))
    for _ in range(trials):
        if how == "law":
            peer.draw(ITEMS, HELD, rng, 30)
        else:
            peer.search(peer.reports(ITEMS[who], np.arange(150) < 120, rng))
    return np.array(cells).astype(int), np.array(last).astype(int)


@pytest.mark.parametrize("how", ["law", "clients"])
def test_counts_have_their_exact_law(how):
    """Of a client, so likely in a group, the report fits a cell with p if it is its own, else q."""
    peer = Bitstogram(4, 2.0, buckets=4, rounds=2, rate=None, final=0.4)
    p, q, trials = peer.oracle.match, 1 / peer.oracle.values, 1200
    cells, last = captured(peer, how, trials, np.random.default_rng(1))
    assert cells.shape == (trials, 8, 8)

    def check(column, share, mine):
        laws = [
            scipy.stats.binom.pmf(np.arange(n + 1), n, share * fit)
            for n, fit in ((HELD[mine].sum(), p), (150 - HELD[mine].sum(), q))
        ]
        law = np.convolve(*laws)
        common = law * trials > 5
        expected = np.append(law[common], law[~common].sum()) * trials
        seen = np.bincount(column, minlength=len(law))
        seen = np.append(seen[common], seen[~common].sum())
        assert scipy.stats.chisquare(seen, expected).pvalue > FALSE_ALARM / 67

    for item in range(3):
        check(last[:, item], 0.4, np.arange(3) == item)
    for group in range(8):
        own = 2 * peer.hashes[group // 4](ITEMS) + ITEMS[:, group % 4]
        for cell in range(8):
            check(cells[:, group, cell], 0.6 / 8, own == cell)


@pytest.mark.parametrize("rate", [None, 0.5])
def test_without_noise_the_most_frequent_item_of_each_bucket_is_read(rate):
    """By brute force: the majority of each bit in each bucket."""
    peer = Bitstogram(12, 30.0, buckets=8, rounds=2, rate=rate, values=2)
    rng = np.random.default_rng(2)
    items = np.unique(rng.integers(0, 2, (5, 12), dtype=np.uint8), axis=0)
    held = np.array([100, 50, 30, 10, 5])
    words = peer.code.encode(items) if peer.code else items
    counts = np.zeros((2, peer.length, 8, 2))
    for number, hashed in enumerate(peer.hashes):
        for item, bucket in enumerate(hashed(items)):
            for place in range(peer.length):
                counts[number, place, bucket, words[item, place]] += held[item]
    found = {row.tobytes() for row in peer._candidates(counts.reshape(2 * peer.length, 16))}
    for hashed in peer.hashes:
        buckets = hashed(items)
        for bucket in set(buckets.tolist()):
            strongest = int(np.argmax(np.where(buckets == bucket, held, 0)))
            if held[strongest] > held[buckets == bucket].sum() / 2:
                assert items[strongest].tobytes() in found
    assert len(found) <= 16


def test_a_candidate_hashes_to_the_bucket_that_it_was_read_in():
    peer, rng = Bitstogram(12, 2.0, buckets=8, rate=None), np.random.default_rng(8)
    counts = rng.random((12, 8, 2))
    words = (counts[:, :, 1] > counts[:, :, 0]).T.astype(np.uint8)
    right = [word for bucket, word in enumerate(words) if peer.hashes[0]([word])[0] == bucket]
    assert 0 < len(right) < 8
    found = peer._candidates(counts.reshape(12, 16))
    assert sorted(found.tolist()) == sorted(word.tolist() for word in right)


def test_the_code_corrects_wrong_bits():
    peer = Bitstogram(20, 2.0, buckets=256, rate=1 / 3)
    assert (peer.length, peer.code.k) == (64, 20)
    counts = np.zeros((64, 256, 2))
    bucket, word = peer.hashes[0](BITS[:1])[0], peer.code.encode(BITS[0])
    wrong = np.arange(64) % 11 == 3  # six of 64
    counts[np.arange(64), bucket, word ^ wrong] = 1
    found = peer._candidates(counts.reshape(64, 512))
    assert BITS[0].tolist() in found.tolist()


@pytest.mark.parametrize("how", ["law", "clients"])
@pytest.mark.parametrize("options", [{}, {"rate": None, "rounds": 2}, {"values": 2}])
def test_frequent_items_are_found(how, options):
    peer, rng = Bitstogram(20, 5.0, buckets=64, **options), np.random.default_rng(3)
    counts = 2 * COUNTS
    if how == "law":
        lines = peer.draw(BITS, counts, rng, 1940, NAMES)
    else:
        who = np.append(np.repeat(np.arange(4), counts), np.zeros(1940, int))
        sent = peer.reports(BITS[who], np.arange(len(who)) < counts.sum(), rng)
        lines = peer.search(sent, NAMES)
    assert [line.item for line in lines][:3] == ["ANNA", "BOB", "CAY"]
    # 6000 clients are in the final count: 6 standard errors.
    for line, count in zip(lines, counts, strict=False):
        assert line.frequency == pytest.approx(count / 40_000, abs=6 * 1.02 / np.sqrt(6000))
        assert line.low < line.frequency < line.high


def test_noise_alone_is_seldom_an_item():
    peer = Bitstogram(12, 1.0, buckets=64, rate=None)
    rng, items = np.random.default_rng(4), np.eye(4, 12, dtype=np.uint8)
    drawn = [peer.draw(items, np.zeros(4, int), rng, 3000) for _ in range(300)]
    assert sum(map(bool, drawn)) <= scipy.stats.binom.isf(FALSE_ALARM, 300, 0.05)


def test_long_items_and_no_client():
    bits = np.random.default_rng(5).integers(0, 2, (2, 128), dtype=np.uint8)
    peer = Bitstogram(128, 6.0, buckets=256)
    lines = peer.draw(bits, [60_000, 40_000], np.random.default_rng(6))
    np.testing.assert_array_equal([line.item for line in lines[:2]], bits)
    with pytest.raises(ValueError, match="no client"):
        peer.draw(bits, [0, 0], np.random.default_rng(7))


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"epsilon": 0.0},
        {"buckets": 1000},
        {"rounds": 0},
        {"rate": 1.5},
        {"list_size": 0},
        {"values": 1},
        {"final": 1.0},
        {"fdr": 7},
    ],
)
def test_wrong_arguments(wrong):
    name = {"buckets": "count"}.get(next(iter(wrong)), next(iter(wrong)))
    with pytest.raises(ValueError, match=name):
        Bitstogram(**{"k": 40, "epsilon": 1.0, **wrong})
