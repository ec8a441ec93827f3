"""`Prot` in every channel: privacy by enumeration, all statistics by hand, the law against clients.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import decimal
import itertools
import tracemalloc
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest
import scipy
from strategies import FALSE_ALARM, TINY

from ldpcash import PolarCode, Prot
from ldpcash.base.arrays import bits_of
from ldpcash.codec.fields import PRIMITIVE
from ldpcash.codec.hadamard import code_of_symbols, hadamard_code
from ldpcash.histogram.prot_channels import ProtChannels

KINDS = {  # code, K, b: signs; symbols as they are, and through views; more symbols than channels
    "signs": (PolarCode.construct(8, 3), 4, 1),
    "signs in one channel": (TINY, 1, 1),
    "symbols": (hadamard_code(3), 8, 3),
    "views of symbols": (hadamard_code(4), 4, 2),
    "views with much in common": (code_of_symbols(4, 64, 4), 4, 3),
    "symbols of several blocks": (code_of_symbols(6, 64, 4), 16, 4),
    "few channels": (hadamard_code(5), 4, 5),
    "one channel": (hadamard_code(4), 1, 4),
    "wide symbols": (hadamard_code(12), 2, 12),
    "wide symbols of two blocks": (code_of_symbols(12, 2048, 10), 4, 10),
}


@pytest.fixture(params=KINDS)
def prot(request):
    code, count, width = KINDS[request.param]
    return ProtChannels(code, 1.5, count, width)


def times(a, b, m):
    """A product in the field of 2**m elements, as polynomials."""
    product = 0
    for i in range(m):
        product ^= (a << i) * (b >> i & 1)
    for i in range(2 * m, m - 1, -1):
        product ^= (product >> i & 1) * (PRIMITIVE[m - 1] << i - m)
    return product


def meaning(prot, seed):
    """The number a and the view that a seed stands for."""
    return divmod(int(seed) % (prot.count * prot.views.count), prot.views.count)


def unmasked(prot, channel, a, symbol):
    """What a symbol that was sent for the number a would be, had it been masked in a channel."""
    bits = max(prot.count.bit_length() - 1, prot.width)
    return int(symbol) ^ times(channel, a, bits) % prot.symbols


def values_of(prot, items):
    return prot.views.values_of(prot.code.encode(items))


class Words:
    """A generator whose words are known: the same coin for all, and then each one's own symbol."""

    def __init__(self, coin, symbols):
        packed = np.zeros(-(-len(symbols) // 4) * 4, dtype=np.uint16)
        packed[: len(symbols)] = symbols
        self.given = [np.full(len(symbols), coin, dtype=np.uint64), packed.view(np.uint64)]

    def integers(self, low, high, size, dtype):
        assert (low, high, dtype, size) == (0, 2**64, np.uint64, len(self.given[0]))
        return self.given.pop(0)


def changes(function, low, high):
    """Where a function of whole numbers that is constant in pieces changes, if no value returns."""
    if function(low) == function(high):
        return []
    if high - low == 1:
        return [high]
    middle = (low + high) // 2
    return [*changes(function, low, middle), *changes(function, middle, high)]


class TestPrivacy:
    @pytest.mark.parametrize("blank", [False, True])
    @pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0, 4.0])
    @pytest.mark.parametrize(
        ("code", "width"), [(TINY, 1), (hadamard_code(3), 2), (hadamard_code(4), 4)], ids=str
    )
    def test_no_report_tells_more_than_epsilon_whatever_the_ticket(
        self, code, width, epsilon, blank
    ):
        """Every probability, by going through all choices that the client's own code makes.

        All pairs of inputs: each item, and nothing; all that a ticket's seed can stand for.
        """
        prot = ProtChannels(code, epsilon, 2, width, blank)
        items = bits_of(np.arange(2**code.k), code.k)
        channel = np.arange(len(items)) % 2
        shape = len(items) + 1, 2 * prot.views.count, prot.symbols
        who, seeds, symbols = (axis.ravel() for axis in np.indices(shape))
        who = np.where(who == len(items), -1, who)
        seeds = seeds.astype(np.uint64) + np.uint64(2**63)  # beyond its low bits nothing counts

        def sent(coin):
            words = Words(coin, symbols)
            found = prot.reports(items, channel, who, seeds, words)
            assert words.given == []
            return found.tobytes()

        ends = [0, *changes(sent, 0, 2**64 - 1), 2**64]
        for coin in np.random.default_rng(1).integers(0, 2**64, 50, dtype=np.uint64).tolist():
            start = max(end for end in ends if end <= coin)
            assert sent(coin) == sent(start)  # there are no other pieces
        law = np.zeros((*shape[:2], prot.symbols + 1), dtype=object)  # times 2**64 g: whole numbers
        for start, end in itertools.pairwise(ends):
            found = np.frombuffer(sent(start), dtype=prot.payload).reshape(shape)
            for symbol in range(prot.symbols + 1):
                law[..., symbol] += (end - start) * (found == symbol).sum(axis=2).astype(object)
        assert (law.sum(axis=2) == 2**64 * prot.symbols).all()
        assert (law[..., prot.symbols] > 0).any() == blank
        law = law[..., : prot.symbols + blank]
        with decimal.localcontext(prec=60):
            limit = Decimal(epsilon).exp()
            worst = max(map(Decimal, (law.max(axis=0) * 10**40 // law.min(axis=0)).ravel()))
            assert limit * (1 - Decimal(10) ** -11) < worst / 10**40 <= limit

    def test_the_operating_system_s_randomness_is_used_if_none_is_given(self):
        prot = ProtChannels(hadamard_code(4), 1.0, 2, 4)
        items, who = np.zeros((1, 4), np.uint8), np.zeros(64, dtype=np.intp)
        seeds = np.zeros(64, np.uint64)
        first, second = (
            prot.reports(items, np.zeros(1, np.intp), who, seeds, None) for _ in range(2)
        )
        assert not np.array_equal(first, second)  # by chance once in 2**100


class TestByHand:
    """Everything a server computes from a table of counts, out of single reports, one by one."""

    CLIENTS = 60

    @pytest.fixture
    def filled(self, prot):
        rng = np.random.default_rng(3)
        seeds = rng.integers(0, 2**64, self.CLIENTS, dtype=np.uint64)
        sent = rng.integers(0, prot.symbols, self.CLIENTS).astype(prot.payload)
        sums = prot.empty()
        prot.add(sums, seeds, sent)
        return prot, seeds, sent, sums

    def heard(self, prot, seeds, sent, channel):
        """In one channel, of each view and sum of bits how it came out, as a server scales it."""
        heard = np.zeros((prot.views.count, prot.symbols))
        sums = np.arange(prot.symbols)
        for seed, symbol in zip(seeds, sent, strict=True):
            a, view = meaning(prot, seed)
            own = unmasked(prot, channel, a, symbol)
            heard[view] += np.where(np.bitwise_count(sums & own) % 2, 1, -1)
        return heard * prot.views.count / (prot.response.true * self.CLIENTS)

    def test_a_report_is_one_count(self, filled):
        prot, seeds, sent, sums = filled
        expected = np.zeros_like(sums)
        for seed, symbol in zip(seeds, sent, strict=True):
            a, view = meaning(prot, seed)
            expected[a, symbol, view] += 1
        np.testing.assert_array_equal(sums, expected)
        assert sums.shape == (prot.count, prot.symbols, prot.views.count)

    def test_truthful_clients_send_their_masked_symbol(self):
        """At a large epsilon all of them do."""
        for code, count, width in KINDS.values():
            prot = ProtChannels(code, 200.0, count, width)
            rng = np.random.default_rng(4)
            items = rng.integers(0, 2, (3, code.k), dtype=np.uint8)
            channel, who = rng.integers(0, count, 3), rng.integers(0, 3, 50)
            seeds = rng.integers(0, 2**64, 50, dtype=np.uint64)
            sent = prot.reports(items, channel, who, seeds, rng)
            values = values_of(prot, items)
            for seed, holder, symbol in zip(seeds, who, sent, strict=True):
                a, view = meaning(prot, seed)
                assert unmasked(prot, int(channel[holder]), a, symbol) == values[holder, view]

    def test_estimates(self, filled):
        prot, seeds, sent, sums = filled
        rng = np.random.default_rng(5)
        items = rng.integers(0, 2, (6, prot.code.k), dtype=np.uint8)
        channel = rng.integers(0, prot.count, 6)
        expected = np.zeros(6)
        for i, values in enumerate(values_of(prot, items)):
            for seed, symbol in zip(seeds, sent, strict=True):
                a, view = meaning(prot, seed)
                match = unmasked(prot, int(channel[i]), a, symbol) == values[view]
                expected[i] += prot.symbols * match - 1
        expected /= prot.response.true * (prot.symbols - 1) * self.CLIENTS
        signals = prot.signals(sums, self.CLIENTS)
        np.testing.assert_allclose(prot.estimates(signals, items, channel), expected, atol=1e-9)

    def test_means(self, filled):
        """Coordinates of the code that are the same sum of an item's bits are taken together."""
        prot, seeds, sent, sums = filled
        units = np.eye(prot.code.k, dtype=np.uint8)
        columns = [column.tobytes() for column in prot.code.encode(units).T]
        values = values_of(prot, units)  # (k, views)
        means = prot.means(prot.signals(sums, self.CLIENTS), np.arange(prot.count))
        assert means.shape == (prot.count, prot.code.n)
        for channel in range(prot.count):
            heard, expected = self.heard(prot, seeds, sent, channel), Counter()
            for view, total in itertools.product(range(prot.views.count), range(1, prot.symbols)):
                column = (np.bitwise_count(values[:, view] & total) % 2).astype(np.uint8)
                expected[column.tobytes()] += heard[view, total]
            found = Counter()
            for column, mean in zip(columns, means[channel], strict=True):
                found[column] += mean
            for column in set(columns):
                assert found[column] == pytest.approx(expected[column], abs=1e-9)
        some = np.array([prot.count - 1, 0])
        np.testing.assert_array_equal(
            prot.means(prot.signals(sums, self.CLIENTS), some), means[some]
        )
        assert not means[:, ~prot.live].any()

    def test_energy(self, filled):
        prot, seeds, sent, sums = filled
        expected = [
            np.square(self.heard(prot, seeds, sent, channel)[:, 1:]).mean()
            for channel in range(prot.count)
        ]
        np.testing.assert_allclose(prot.energy(prot.signals(sums, self.CLIENTS)), expected)

    def test_taking_out_an_item_takes_out_what_its_clients_would_have_sent(self, filled):
        """In the mean, and from all channels, also where they hear each other."""
        prot, _, _, sums = filled
        rng = np.random.default_rng(6)
        items = rng.integers(0, 2, (3, prot.code.k), dtype=np.uint8)
        channel, frequency = rng.integers(0, prot.count, 3), np.array([0.3, 0.01, 0.2])
        expected = sums.astype(float)
        for values, place, f in zip(values_of(prot, items), channel, frequency, strict=True):
            each = f * prot.response.true * self.CLIENTS / (prot.count * prot.views.count)
            for a in range(prot.count):
                for view, value in enumerate(values):
                    expected[a, unmasked(prot, int(place), a, value), view] -= each
        signals = prot.signals(sums, self.CLIENTS)
        prot.take_out(signals, items, channel, frequency)
        wanted = prot.signals(expected, self.CLIENTS)
        every = np.arange(prot.count)
        scale = np.abs(wanted).max()
        for function in (lambda s: prot.means(s, every), prot.energy):
            np.testing.assert_allclose(function(signals), function(wanted), atol=1e-9 * scale**2)
        other = rng.integers(0, 2, (20, prot.code.k), dtype=np.uint8)
        place = rng.integers(0, prot.count, 20)
        np.testing.assert_allclose(
            prot.estimates(signals, other, place),
            prot.estimates(wanted, other, place),
            atol=1e-9 * scale,
        )

    def test_channels_are_apart_if_they_have_no_sum_in_common(self, prot):
        """A sum of bits, unmasked in two channels, must differ for some number a."""
        numbers = range(prot.count)
        common = 0
        for one, other in itertools.combinations(numbers, 2):
            moves = {unmasked(prot, one, a, 0) ^ unmasked(prot, other, a, 0) for a in numbers}
            moves = np.array(sorted(moves))
            sums = np.arange(1, prot.symbols)[:, None]
            common += int((np.bitwise_count(sums & moves) % 2 == 0).all(axis=1).sum())
        assert prot.apart == (common == 0)

    def test_the_order_of_items_and_how_many_at_once_do_not_matter(self, filled, monkeypatch):
        prot, _, _, sums = filled
        rng = np.random.default_rng(7)
        items = rng.integers(0, 2, (20, prot.code.k), dtype=np.uint8)
        channel, who = rng.integers(0, prot.count, 20), rng.integers(-1, 20, 100)
        seeds = rng.integers(0, 2**64, 100, dtype=np.uint64)

        def everything():
            signals = prot.signals(sums, self.CLIENTS)
            estimates = prot.estimates(signals, items, channel)
            prot.take_out(signals, items, channel, np.arange(20) / 100)
            sent = prot.reports(items, channel, who, seeds, np.random.default_rng(8))
            drawn = prot.draw(items, channel, np.arange(20), 300, np.random.default_rng(9))
            return estimates, signals, sent, drawn.sum()

        at_once = everything()
        monkeypatch.setattr("ldpcash.histogram.prot_channels._BATCH_VALUES", 1)
        for one, other in zip(at_once, everything(), strict=True):
            np.testing.assert_array_equal(one, other)


def test_an_item_alone_is_heard_as_it_is(prot):
    """No noise, and nobody else: in its own channel with all signs, in the others not at all."""
    item = np.random.default_rng(10).integers(0, 2, (1, prot.code.k), dtype=np.uint8)
    own, every = np.array([prot.count - 1]), np.arange(prot.count)
    signals = prot.signals(prot.empty(), 100)
    prot.take_out(signals, item, own, np.array([-0.5]))
    assert prot.estimates(signals, item, own) == pytest.approx([0.5])
    means, energy = prot.means(signals, every), prot.energy(signals)
    heard = np.abs(means[own[0]]) / 0.5  # more than once where views have coordinates in common
    signs = 2.0 * prot.code.encode(item)[0] - 1
    np.testing.assert_allclose(means[own[0]], 0.5 * signs * heard, atol=1e-12)
    np.testing.assert_array_equal(heard > 0.5, prot.live)
    assert heard.sum() == pytest.approx(prot.coordinates)
    assert energy[own[0]] == pytest.approx(0.25)
    if prot.apart:
        np.testing.assert_allclose(np.delete(means, own, axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(np.delete(energy, own), 0, atol=1e-12)


def same_law(first, second):
    """Two lists of outcomes: the p-value of their having one law (rare outcomes taken together)."""
    counts = [Counter(outcomes) for outcomes in (first, second)]
    both = counts[0] + counts[1]
    common = [outcome for outcome in both if both[outcome] >= 20]
    table = np.array(
        [[c[o] for o in common] + [len(x)] for c, x in zip(counts, (first, second), strict=True)]
    )
    table[:, -1] -= table[:, :-1].sum(axis=1)
    return scipy.stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue


def client_sums(prot, items, channel, counts, clients, trials, rng):
    """Sums of client-by-client reports of many collections."""
    who = np.full(clients, -1)
    who[: sum(counts)] = np.repeat(np.arange(len(counts)), counts)
    seeds = rng.integers(0, 2**64, (trials, clients), dtype=np.uint64)
    sent = prot.reports(items, channel, np.tile(who, trials), seeds.ravel(), rng)
    for mine, values in zip(seeds, sent.reshape(trials, clients), strict=True):
        sums = prot.empty()
        prot.add(sums, mine, values)
        yield sums


LAWS = [  # code, K, b, blank, channels of two items, how many hold them, clients
    (TINY, 2, 1, False, [0, 1], [2, 1], 4),
    (TINY, 2, 1, True, [1, 1], [3, 0], 5),
    (hadamard_code(3), 2, 3, False, [1, 1], [9, 6], 20),
    (hadamard_code(4), 4, 2, False, [0, 3], [9, 6], 15),
    (hadamard_code(4), 2, 2, True, [1, 0], [6, 2], 20),
    (code_of_symbols(4, 64, 4), 2, 4, True, [0, 0], [5, 5], 12),
]


class TestLaw:
    @pytest.mark.parametrize(
        ("code", "count", "width", "blank", "channel", "counts", "clients"), LAWS, ids=range(6)
    )
    def test_sums_have_the_clients_law(self, code, count, width, blank, channel, counts, clients):
        """How many answered, and how many of them agree with each of two items, all together."""
        prot = ProtChannels(code, 1.5, count, width, blank)
        items = np.zeros((2, code.k), dtype=np.uint8)
        items[0, 1:], items[1, 0] = 1, 1
        channel, rng = np.array(channel), np.random.default_rng(7)
        view, g = np.arange(prot.views.count), prot.symbols
        cells = [
            np.array([[unmasked(prot, place, a, value) for value in values] for a in range(count)])
            for values, place in zip(values_of(prot, items), channel.tolist(), strict=True)
        ]

        def outcome(sums):
            agree = [int(sums[np.arange(count)[:, None], own, view].sum()) for own in cells]
            return int(sums.sum()), *agree

        told = list(client_sums(prot, items, channel, counts, clients, 2000, rng))
        drawn = [prot.draw(items, channel, counts, clients, rng) for _ in range(2000)]
        first, second = ([outcome(sums) for sums in some] for some in (told, drawn))
        assert same_law(first, second) > FALSE_ALARM
        # And the mean of every single cell: all that share a kind of client are alike.
        answering = prot.response.true + prot.response.any
        held = sum(counts)
        flat = (held * prot.response.any + (clients - held) * prot.response.any_empty) / g
        expected = np.full(prot.shape, flat / (count * len(view)))
        for own, holders in zip(cells, counts, strict=True):
            expected[np.arange(count)[:, None], own, view] += (
                holders * prot.response.true / (count * len(view))
            )
        assert expected.sum() == pytest.approx(
            held * answering + (clients - held) * prot.response.any_empty
        )
        for some in (told, drawn):
            total = np.sum(some, axis=0)
            # A sum of rare independent counts has at most a Poisson variable's tails.
            p = np.minimum(
                scipy.stats.poisson.cdf(total, 2000 * expected),
                scipy.stats.poisson.sf(total - 1, 2000 * expected),
            )
            assert p.min() > FALSE_ALARM / (2 * p.size)

    def test_one_channel_of_signs_is_prot(self):
        prot, channels = Prot(TINY, 1.5), ProtChannels(TINY, 1.5, 1)
        rng = np.random.default_rng(9)
        y = prot.mean_reports(np.tile([0, 1], (2000, 1)), 0.75, 4, rng) * np.sqrt(2)
        items, own = np.array([[0, 1]], dtype=np.uint8), np.zeros(1, dtype=int)
        mine = []
        for _ in range(2000):
            signals = channels.signals(channels.draw(items, own, np.array([3]), 4, rng), 4)
            mine.append(channels.means(signals, own)[0])
        a, b = ([tuple(np.round(row, 6) + 0.0) for row in rows] for rows in (y, mine))
        assert same_law(a, b) > FALSE_ALARM

    @pytest.mark.parametrize("blank", [False, True])
    @pytest.mark.parametrize(("code", "width"), [(TINY, 1), (hadamard_code(5), 5)], ids=str)
    @pytest.mark.parametrize("frequency", [0.0, 0.5])
    def test_the_estimate_has_the_variance_it_says(self, code, width, blank, frequency):
        """Mean and variance of 1200 estimates, of which each is scaled with what its sums tell.

        Their squares are nearly chi-square; 3 % are left for what their law differs by.
        """
        prot = ProtChannels(code, 1.0, 2, width, blank)
        item, rng = np.ones((1, code.k), dtype=np.uint8), np.random.default_rng(11)
        own, held = np.ones(1, dtype=int), np.array([round(400 * frequency)])
        z = []
        for _ in range(1200):
            sums = prot.draw(item, own, held, 400, rng)
            [estimate] = prot.estimates(prot.signals(sums, 400), item, own)
            [variance] = prot.variance(np.array([frequency]), sums, 400)
            z.append((estimate - frequency) / np.sqrt(variance))
        assert abs(np.mean(z)) < scipy.stats.norm.isf(FALSE_ALARM / 2) / np.sqrt(1200) * 1.03
        low, high = scipy.stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 1199) / 1199
        assert low * 0.97 < np.var(z, ddof=1) < high * 1.03
        if frequency == 0 and not blank:
            assert variance == pytest.approx(prot.noise**2 / 400)

    def test_p_values_are_binomial(self):
        """Of the clients that answered, each agrees with an item that nobody holds once in g."""
        for blank in (False, True):
            prot = ProtChannels(hadamard_code(4), 1.0, 4, 4, blank)
            sums = prot.empty()
            sums[0, 0, 0] = 300  # of 400 clients
            matches = np.array([10, 20, 30, 200])
            estimate = (matches / 300 * 16 - 1) * 300 / (prot.response.true * 15 * 400)
            np.testing.assert_allclose(
                prot.p_value(estimate, np.zeros(4), sums, 400),
                scipy.stats.binom.sf(matches - 1, 300, 1 / 16),
            )

    def test_noise_is_that_of_the_share_that_holds_nothing(self):
        full, empty = (ProtChannels(hadamard_code(4), 1.0, 4, 4, True, share) for share in (0, 1))
        assert full.noise == full.response.noise(0.0) > empty.noise == empty.response.noise(1.0)


@pytest.mark.parametrize(("code", "count", "width"), KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("blank", [False, True])
def test_what_an_honest_client_may_send(code, count, width, blank):
    prot = ProtChannels(code, 1.0, count, width, blank)
    last = prot.symbols - 1 + blank
    assert prot.payload == (np.uint8 if last < 256 else np.dtype("<u2"))
    most = min(last + 1, np.iinfo(prot.payload).max)
    sent = np.array([0, last, most, np.iinfo(prot.payload).max]).astype(prot.payload)
    assert prot.honest(sent).tolist() == [value <= last for value in sent.tolist()]
    before = prot.empty()
    if blank:  # it is counted nowhere
        prot.add(before, np.arange(2, dtype=np.uint64), np.full(2, last).astype(prot.payload))
        assert not before.any()


def test_as_many_channels_as_there_can_be():
    """No table of all pairs of them is needed: that would be 2 GB."""
    prot, rng = ProtChannels(TINY, 200.0, 2**14), np.random.default_rng(1)
    items, own = np.array([[0, 1]], dtype=np.uint8), np.array([12345])
    seeds, sums = rng.integers(0, 2**64, 20, dtype=np.uint64), prot.empty()
    tracemalloc.start()
    prot = ProtChannels(TINY, 200.0, 2**14)
    prot.add(sums, seeds, prot.reports(items, own, np.zeros(20, dtype=np.intp), seeds, rng))
    assert tracemalloc.get_traced_memory()[1] < 2**25
    tracemalloc.stop()
    signals = prot.signals(sums, 20)
    np.testing.assert_allclose(prot.estimates(signals, items, own), [1])


def test_the_table_of_masks():
    prot = ProtChannels(hadamard_code(4), 1.0, 4, 4)
    expected = [[unmasked(prot, channel, a, 0) for a in range(4)] for channel in range(4)]
    assert prot.masks.tolist() == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TINY, 0, 2), "epsilon = 0"),
        ((TINY, np.nan, 2), "epsilon = nan"),
        ((TINY, "1", 2), "epsilon = '1'"),
        ((TINY, 1.0, 3), "count = 3: channels need a power of two"),
        ((TINY, 1.0, 2, 2), "width = 2: needs a whole number from 1 to 1"),
        ((hadamard_code(4), 1.0, 2, 0), "width = 0"),
        ((TINY, 1.0, 2, 1, False, 1.5), "empty = 1.5: needs a number from 0 to 1"),
        ((TINY, 41.0, 2, 1, True), "epsilon = 41.0: needs a number"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        ProtChannels(*arguments)
