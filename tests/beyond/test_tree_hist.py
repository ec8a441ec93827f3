"""TreeHist: its sketch against brute force and closed forms, the tree against the truth.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import numpy as np
import pytest
import scipy
from strategies import BITS, COUNTS, FALSE_ALARM, NAMES

from ldpcash.base.arrays import bits_of
from ldpcash.beyond.local_hashing import keys_of
from ldpcash.beyond.tree_hist import CountSketch, SketchReports, TreeHist, TreeReports

KEYS = keys_of(bits_of(np.arange(6), 3))


def sent_by_brute_force(sketch, sent, keys):
    """Every client's contribution to every key: ``(C, N)``, with SciPy's Hadamard matrix."""
    hadamard = scipy.linalg.hadamard(sketch.width)
    cells, negative = sketch._hash(sketch._seeds[sent.rows], keys[:, None])
    return hadamard[cells, sent.places] * np.where(negative, -1, 1) * sent.signs * sketch.scale


@pytest.mark.parametrize("combine", ["mean", "median"])
def test_estimates_are_those_of_brute_force(combine):
    sketch, rng = CountSketch(1.0, 5, 8, combine, seed=3), np.random.default_rng(1)
    for clients in (3, 400):  # with 3, some rows have nobody
        sent = sketch.reports(KEYS[rng.integers(0, 6, clients)], np.ones(clients, bool), rng)
        each = sent_by_brute_force(sketch, sent, KEYS)
        rows = [each[:, sent.rows == row] for row in range(5) if (sent.rows == row).any()]
        expected = each.mean(axis=1)
        if combine == "median":
            expected = np.median([row.mean(axis=1) for row in rows], axis=0)
        np.testing.assert_allclose(sketch.estimate(sent, KEYS), expected, atol=1e-12)


@pytest.mark.parametrize(("held", "flip"), [(True, 1 / (np.e + 1)), (False, 0.5)])
def test_a_bit_is_true_as_often_as_epsilon_allows(held, flip):
    """Row and place are uniform, and in each the odds of the two bits are e^epsilon."""
    sketch, rng = CountSketch(1.0, 2, 4, seed=1), np.random.default_rng(2)
    sent = sketch.reports(np.repeat(KEYS[1], 80_000), np.full(80_000, held), rng)
    right = (sent_by_brute_force(sketch, sent, KEYS[1:2])[0] > 0).astype(int)
    seen = np.bincount((sent.rows * 4 + sent.places) * 2 + right, minlength=16)
    law = np.tile([flip, 1 - flip], 8) / 8
    assert scipy.stats.chisquare(seen, 80_000 * law).pvalue > FALSE_ALARM
    assert (1 - sketch.flip) / sketch.flip == pytest.approx(np.e)


@pytest.mark.parametrize("combine", ["mean", "median"])
def test_estimates_are_unbiased_and_have_the_variance_of_the_formula(combine):
    """Over public hashes too: those collide with probability 1 / m, in each of t rows alike."""
    rng, trials, clients, t, m = np.random.default_rng(3), 2000, 500, 4, 16
    counts = np.array([250, 100, 50])  # of keys 0 to 2; a fifth of the clients holds nothing
    keys = np.append(np.repeat(KEYS[:3], counts), np.zeros(100, np.uint64))
    found = []
    for trial in range(trials):
        sketch = CountSketch(2.0, t, m, combine, seed=trial)
        sent = sketch.reports(keys, np.arange(clients) < 400, rng)
        found.append(sketch.estimate(sent, KEYS[[0, 1, 5]]))
    found, f = np.array(found), counts / clients
    frequency = np.array([0.5, 0.2, 0.0])
    z = scipy.stats.norm.isf(FALSE_ALARM / 20)
    assert (abs(found.mean(axis=0) - frequency) < z * found.std(axis=0) / np.sqrt(trials)).all()
    if combine == "mean":
        others = (f**2).sum() - frequency**2
        variance = (sketch.scale**2 - frequency**2) / clients + others / (t * m)
        # Collisions are rare and large, so the fourth moment is a little above the normal one's 3.
        assert (abs(found.var(axis=0) / variance - 1) < z * np.sqrt(3 / trials)).all()
        assert sketch.deviation(clients) == pytest.approx(sketch.scale / np.sqrt(clients))


def test_the_median_of_many_rows_has_the_noise_it_says():
    rng, trials = np.random.default_rng(4), 1500
    sketch = CountSketch(2.0, 51, 64, "median")
    keys = np.zeros(51 * 200, dtype=np.uint64)
    nobody = np.zeros(len(keys), dtype=bool)
    found = [sketch.estimate(sketch.reports(keys, nobody, rng), KEYS[:1]) for _ in range(trials)]
    # 51 rows are a few, and so the median is better than that of endlessly many by about 1 / 51.
    z = scipy.stats.norm.isf(FALSE_ALARM / 2) / np.sqrt(2 * trials)
    assert abs(np.std(found) / sketch.deviation(len(keys)) - 1) < z + 0.02


@pytest.mark.parametrize("how", ["law", "clients"])
def test_frequent_items_are_found(how):
    tree = TreeHist(20, 4.0, start=8, step=4, threshold=2.5, keep=30)
    rng = np.random.default_rng(5)
    counts = 5 * COUNTS
    if how == "law":
        lines = tree.draw(BITS, counts, rng, 4850, NAMES)
    else:
        who = np.append(np.repeat(np.arange(4), counts), np.zeros(4850, int))
        sent = tree.reports(BITS[who], np.arange(len(who)) < counts.sum(), rng)
        lines = tree.search(sent, NAMES)
    assert [line.item for line in lines][:3] == ["ANNA", "BOB", "CAY"]
    # 20,000 clients are in the final count: 6 standard errors.
    for line, count in zip(lines, counts, strict=False):
        assert line.frequency == pytest.approx(count / 100_000, abs=6 * 1.04 / np.sqrt(20_000))
        assert line.low < line.frequency < line.high


def test_what_is_drawn_has_the_law_of_clients():
    """The final estimate of an item and of one that nobody has, 300 times each."""
    tree = TreeHist(20, 2.0, start=10, step=10, threshold=-9.0, keep=4, hashes=8, width=16)
    rng, found = np.random.default_rng(6), {"law": [], "clients": []}
    asked, counts = keys_of(BITS[[0, 3]]), np.array([90, 60, 40, 0])
    who = np.append(np.repeat(np.arange(4), counts), np.zeros(60, int))
    for how, seen in found.items():
        tree._grow = lambda groups, packing, seen=seen: seen.append(
            [len(sent.rows) for sent in groups] + [*tree.sketches[-1].estimate(groups[-1], asked)]
        )
        for _ in range(300):
            if how == "law":
                tree.draw(BITS, counts, rng, 60)
            else:
                tree.search(tree.reports(BITS[who], np.arange(len(who)) < 190, rng))
    for law, clients in zip(*(np.array(seen).T for seen in found.values()), strict=True):
        assert scipy.stats.ks_2samp(law, clients).pvalue > FALSE_ALARM / 5
        assert len(set(law)) > 10


def test_noise_alone_is_seldom_an_item():
    tree = TreeHist(10, 1.0, start=6, step=4, threshold=0.0, keep=30)
    rng, nobody = np.random.default_rng(7), np.zeros(4, dtype=int)
    items = np.eye(4, 10, dtype=np.uint8)
    false = sum(bool(tree.draw(items, nobody, rng, 3000)) for _ in range(200))
    assert false <= scipy.stats.binom.isf(FALSE_ALARM, 200, 0.05)


def test_leaves_are_accepted_by_their_gaussian_tails():
    tree, rng = TreeHist(3, 2.0, start=3, threshold=-1e9, fdr=0.1), np.random.default_rng(10)
    for _ in range(20):
        z = rng.normal(1.5, 1.0, 8)
        estimate = tree.sketches[-1].deviation(1000) * z
        tree.sketches[-1].estimate = lambda sent, keys, found=estimate: found
        tree.sketches[0].estimate = lambda sent, keys: np.arange(8.0)[::-1]  # keeps the order
        nobody = SketchReports(*np.zeros((3, 1000), dtype=int))
        lines = tree._grow([nobody, nobody], None)
        stands_out = scipy.stats.false_discovery_control(scipy.stats.norm.sf(z)) <= 0.1
        expected = np.flatnonzero(stands_out)[np.argsort(-z[stands_out])]
        assert [line.item.tolist() for line in lines] == bits_of(expected, 3).tolist()
        for line, place in zip(lines, expected, strict=True):
            assert line.frequency == estimate[place]
            width = 1.959964 * tree.sketches[-1].deviation(1000)
            assert line.high - line.frequency == pytest.approx(width)


def test_what_is_pruned_is_not_found():
    assert TreeHist(20, 4.0, threshold=1e3).draw(BITS, COUNTS, np.random.default_rng(8)) == []


def test_an_item_of_the_smallest_frequency_is_kept_at_about_half_of_its_levels():
    tree, rng = TreeHist(20, 2.0, start=10, step=10, threshold=3.0), np.random.default_rng(9)
    held = round(tree.smallest(50_000) * 50_000)
    kept = []
    tree._grow = lambda groups, packing: kept.append(
        tree.sketches[0].estimate(groups[0], keys_of(BITS[:1, :10]))[0]
        > tree.threshold * tree.sketches[0].deviation(len(groups[0].rows))
    )
    for _ in range(300):
        tree.draw(BITS[:1], [held], rng, 50_000 - held)
    assert scipy.stats.binomtest(sum(kept), 300, 0.5).pvalue > FALSE_ALARM


def test_long_items_and_no_client():
    bits = np.random.default_rng(1).integers(0, 2, (2, 128), dtype=np.uint8)
    tree = TreeHist(128, 6.0, start=16, step=8, threshold=2.5, keep=20)
    lines = tree.draw(bits, [90_000, 60_000], np.random.default_rng(2))
    np.testing.assert_array_equal([line.item for line in lines[:2]], bits)
    nobody = SketchReports(*np.zeros((3, 0), dtype=int))
    with pytest.raises(ValueError, match="no client"):
        tree.search(TreeReports(np.zeros(0, dtype=int), nobody))


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 257},
        {"epsilon": 0.0},
        {"start": 21},
        {"step": 0},
        {"threshold": np.nan},
        {"final": 1.0},
        {"hashes": 0},
        {"width": 1000},
        {"combine": "mode"},
        {"keep": 0},
        {"fdr": 7},
    ],
)
def test_wrong_arguments(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TreeHist(**{"k": 40, "epsilon": 1.0, **wrong})
