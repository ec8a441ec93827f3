"""The histogram: what it finds, what it must not find, and how it takes what it is given.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

from ldpcash.codec.polar import PolarCode
from ldpcash.histogram import population as room
from ldpcash.histogram.cash_channels import CashChannels
from ldpcash.histogram.collector import Collector
from ldpcash.histogram.packing import LATIN, Packing
from ldpcash.histogram.plan import Plan, threshold
from ldpcash.histogram.population import collect, draw_collector, succinct_histogram
from ldpcash.histogram.prot_channels import ProtChannels
from ldpcash.histogram.search import _Search
from ldpcash.histogram.symbols import symbol_code
from ldpcash.histogram.wire import ReportError

FALSE_ALARM = 1e-6
NAMES = Packing(20, LATIN)
BITS = NAMES.pack(["ANNA", "BOB", "CAY", "DORA"])
COUNTS = np.array([9000, 6000, 4000, 30])


def names_of(lines):
    return [line.item for line in lines]


class TestPlan:
    def test_the_rule(self):
        plan = Plan.choose(10**6, 40, 1.0)
        channels = plan.channels
        assert (channels.width, channels.code.n, channels.count, plan.groups) == (2, 512, 256, 1)
        assert Plan.choose(10**5, 40, 1.0).channels.count == 64
        assert Plan.choose(10**6, 40, 4.0).channels.width == 6
        cash = Plan.choose(10**6, 40, 2.0, protocol="Cash")
        assert isinstance(cash.channels, CashChannels)
        assert cash.report_size == 19 + 4 * 128 * 256

    def test_what_is_given_is_taken(self):
        code = PolarCode.construct(64, 20)
        plan = Plan.choose(1000, 20, 1.0, code=code, count=8, groups=3, list_size=4, fdr=0.01)
        assert plan.channels.code is code
        assert plan.channels.width == 1
        assert (plan.channels.count, plan.groups, plan.list_size, plan.fdr) == (8, 3, 4, 0.01)
        assert len(plan.hashes) == 3
        assert Plan.choose(1000, 20, 1.0, width=2).channels.width == 2

    def test_smallest_is_found_every_other_time(self):
        """Of an item that is always decoded: a single bit's, in a code that cannot be mistaken."""
        plan = Plan.choose(10_000, 4, 1.0, count=1, hash_seed=1)
        item = np.array([[1, 0, 1, 1]], dtype=np.uint8)
        held = round(plan.smallest(10_000) * 10_000)
        rng = np.random.default_rng(1)
        found = sum(
            any((line.item == item[0]).all() for line in
                draw_collector(plan, item, [held], rng, 10_000 - held).histogram())
            for _ in range(300)
        )  # fmt: skip
        assert (
            0.5 - 0.2 < found / 300 < 0.5 + 0.2
        )  # 7 standard errors; the best word may be another

    @pytest.mark.parametrize(
        "wrong",
        [
            {"protocol": "RAPPOR"},
            {"clients": 0},
            {"k": 0},
            {"groups": 0},
            {"decision": "firm"},
            {"fdr": 1.0},
            {"fdr": 0},
            {"fdr": -1},
            {"fdr": None},
            {"list_size": 0},
            {"width": 3, "protocol": "Cash"},
            {"hash_seed": -1},
            {"count": 12},
            {"epsilon": 0.0},
            {"code": PolarCode.construct(64, 8)},
        ],
    )
    def test_wrong_arguments(self, wrong):
        with pytest.raises(ValueError, match=f"^{next(iter(wrong))} = "):
            Plan.choose(**{"clients": 100, "k": 20, "epsilon": 1.0, **wrong})

    def test_numbers_of_any_kind_become_plain(self):
        plain = {"hash_seed": 3, "groups": 2, "list_size": 8, "fdr": 0.5}
        for kind in (float, np.float64, lambda x: np.int64(x) if x > 1 else np.float32(x)):
            plan = Plan.choose(1000, 20, 1.0, **{name: kind(x) for name, x in plain.items()})
            assert {name: getattr(plan, name) for name in plain} == plain
            assert [type(getattr(plan, name)) for name in plain] == [int, int, int, float]
            assert plan.fingerprint == Plan.choose(1000, 20, 1.0, **plain).fingerprint

    @pytest.mark.parametrize("epsilon", [2.5, 3.5, 4.0, 6.0])
    @pytest.mark.parametrize("k", [1, 2, 4, 6, 100, 128])
    def test_the_rule_finds_short_and_long_items(self, k, epsilon):
        """60 of 100 clients hold it, hundreds of standard errors."""
        plan = Plan.choose(100_000, k, epsilon, count=4)
        item = np.random.default_rng(k).integers(0, 2, (1, k), dtype=np.uint8)
        rng = np.random.default_rng(1)
        line = draw_collector(plan, item, [60_000], rng, 40_000).histogram()[0]
        np.testing.assert_array_equal(line.item, item[0])
        assert line.frequency == pytest.approx(0.6, abs=0.02)

    def test_threshold_is_the_normal_one(self):
        assert threshold(10, 0.05) == pytest.approx(stats.norm.isf(0.05 / 1024))

    def test_fingerprints_tell_public_parameters_apart(self):
        code, symbols = PolarCode.construct(64, 20), symbol_code(20, 2, 6.0, 64)
        plans = [
            Plan(ProtChannels(code, 1.0, 8)),
            Plan(ProtChannels(code, 1.0, 8), hash_seed=1),
            Plan(ProtChannels(code, 1.0, 8), groups=2),
            Plan(ProtChannels(code, 1.0, 16)),
            Plan(ProtChannels(code, 1.1, 8)),
            Plan(ProtChannels(symbols, 1.0, 8)),
            Plan(ProtChannels(symbols, 1.0, 8, width=2)),
            Plan(CashChannels(code, 1.0, 8)),
            Plan(CashChannels(code, 1.0, 8, 1e-5)),
        ]
        assert len({plan.fingerprint for plan in plans}) == len(plans)
        assert Plan(ProtChannels(code, 1.0, 8), list_size=2).fingerprint == plans[0].fingerprint


OPTIONS = [
    {},
    {"groups": 3},
    {"width": 1},
    {"width": 1, "decision": "hard"},
    {"protocol": "Cash", "count": 16},
]


class TestFinding:
    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    def test_frequent_items_are_found_with_their_frequencies(self, options):
        plan = Plan.choose(20_000, 20, 3.0, hash_seed=5, **options)
        lines = draw_collector(plan, BITS, COUNTS, np.random.default_rng(2), 970).histogram(NAMES)
        assert names_of(lines)[:3] == ["ANNA", "BOB", "CAY"]
        for line, count in zip(lines, COUNTS, strict=False):
            assert line.low < line.frequency < line.high
            # Five standard errors, which is 2.55 half widths of the interval.
            assert abs(line.frequency - count / 20_000) < 2.55 * (line.high - line.frequency)

    def test_items_that_meet_in_a_channel_are_told_apart(self):
        plan = Plan.choose(50_000, 20, 4.0, count=1)
        counts = [25_000, 12_000, 8_000, 0]
        lines = draw_collector(plan, BITS, counts, np.random.default_rng(3), 5000).histogram(NAMES)
        assert names_of(lines)[:3] == ["ANNA", "BOB", "CAY"]
        for line, count in zip(lines, counts, strict=False):
            assert line.frequency == pytest.approx(count / 50_000, abs=0.01)

    def test_noise_alone_is_seldom_an_item(self):
        """fdr = 5 %: of 400 empty populations, more than 43 with an item are one in 1e6."""
        plan = Plan.choose(5000, 10, 1.0, hash_seed=2)
        rng = np.random.default_rng(4)
        none, nobody = np.empty((0, 10), dtype=np.uint8), np.empty(0, dtype=int)
        false = sum(
            bool(draw_collector(plan, none, nobody, rng, 5000).histogram()) for _ in range(400)
        )
        assert false <= stats.binom.isf(FALSE_ALARM, 400, 0.05)
        assert false > 0  # and the threshold is not far off: 1e-6 if the rate were above 3.5 %

    def test_only_words_that_hash_to_their_channel_are_candidates(self, monkeypatch):
        """Of 64 channels with 3 words each, 3 words on average; 40 would be one run in 1e27."""
        pools = []
        accept = _Search.accept
        monkeypatch.setattr(
            _Search,
            "accept",
            lambda self, pool, fdr: (pools.append(pool), accept(self, pool, fdr))[1],
        )
        plan = Plan.choose(5000, 20, 1.0, hash_seed=2)
        assert plan.channels.count == 64
        none, nobody = np.empty((0, 20), dtype=np.uint8), np.empty(0, dtype=int)
        draw_collector(plan, none, nobody, np.random.default_rng(7), 5000).histogram()
        assert sum(map(len, pools)) < 40

    def test_intervals_cover(self):
        plan = Plan.choose(20_000, 20, 3.0, hash_seed=5, count=8, list_size=8)
        rng = np.random.default_rng(6)
        covered = 0
        for _ in range(200):
            line = draw_collector(plan, BITS, COUNTS, rng, 970).histogram(NAMES)[0]
            covered += line.low <= 0.45 <= line.high
        assert covered >= stats.binom.ppf(FALSE_ALARM, 200, 0.95)

    def test_bits_without_a_packing(self):
        plan = Plan.choose(20_000, 20, 3.0)
        line = draw_collector(plan, BITS, COUNTS, np.random.default_rng(2)).histogram()[0]
        np.testing.assert_array_equal(line.item, BITS[0])

    @pytest.mark.parametrize(
        ("bits", "counts", "message"),
        [
            (BITS, [1, 2], r"counts has shape \(2,\) and type int64"),
            (BITS, [1.0, 1, 1, 1], "counts has shape .* and type float64"),
            (BITS, [-1, 2, 3, 4], "counts holds -1: needs whole numbers from 0"),
            (BITS[0], [1], r"bits has shape \(20,\)"),
        ],
    )
    def test_wrong_counts(self, bits, counts, message):
        with pytest.raises(ValueError, match=message):
            draw_collector(Plan.choose(100, 20, 1.0), bits, counts, np.random.default_rng(1))


def population(clients=20_000):
    who = np.full(clients, -1)
    filled = np.repeat(np.arange(4), COUNTS)
    who[: len(filled)] = filled[:clients]
    return np.random.default_rng(1).permutation(who)


class TestCollecting:
    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    def test_clients_and_law_find_the_same(self, options):
        plan = Plan.choose(20_000, 20, 3.0, hash_seed=5, **options)
        clients = 2000 if options.get("protocol") == "Cash" else 20_000
        collector = collect(plan, BITS, population()[:clients], seed=3)
        assert collector.clients.sum() == clients
        if clients == 20_000:
            assert names_of(collector.histogram(NAMES))[:3] == ["ANNA", "BOB", "CAY"]

    def test_the_number_of_workers_does_not_matter(self, monkeypatch):
        monkeypatch.setattr(room, "CHUNK", 1500)
        plan = Plan.choose(20_000, 20, 3.0, hash_seed=5, groups=2)
        here = collect(plan, BITS, population(), seed=3)
        with ThreadPoolExecutor(3) as executor:
            there = collect(plan, BITS, population(), seed=3, executor=executor)
        np.testing.assert_array_equal(here.sums, there.sums)
        assert here.histogram(NAMES) == there.histogram(NAMES)
        assert not np.array_equal(here.sums, collect(plan, BITS, population(), seed=4).sums)

    def test_every_chunk_has_its_own_randomness(self):
        plan = Plan.choose(20_000, 20, 3.0)
        who = population()[:1000]
        first, again, other = (room._collect_chunk(plan, BITS, who, 3, i) for i in (0, 0, 1))
        np.testing.assert_array_equal(first.sums, again.sums)
        assert not np.array_equal(first.sums, other.sums)

    @pytest.mark.parametrize("options", [{}, {"protocol": "Cash", "count": 4}], ids=str)
    def test_bytes_give_the_same_as_arrays_and_sums_add_up(self, options):
        plan = Plan.choose(20_000, 20, 3.0, groups=2, **options)
        seeds, sent = plan.reports(BITS[[0, 1, 1, 2, 0]], np.array([1, 1, 1, 0, 1], bool),
                                   np.random.default_rng(1))  # fmt: skip
        reports = plan.to_bytes(seeds, sent)
        assert {len(report) for report in reports} == {plan.report_size}
        arrays, first, second = Collector(plan), Collector(plan), Collector(plan)
        arrays.add(seeds, sent)
        assert first.receive(reports[:2]) == second.receive(iter(reports[2:])) == []
        both = first + pickle.loads(pickle.dumps(second))
        np.testing.assert_allclose(both.sums, arrays.sums, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(both.clients, arrays.clients)

    def test_memory_is_bounded(self, monkeypatch):
        """No batch is larger than it says, whatever the number of clients."""
        sizes = []
        monkeypatch.setattr(room, "_BATCH_VALUES", 2**14)
        add = Collector.add
        monkeypatch.setattr(
            Collector, "add", lambda self, s, v: (sizes.append(len(s)), add(self, s, v))
        )
        plan = Plan.choose(20_000, 20, 3.0)
        collector = collect(plan, BITS, population(), seed=3)
        assert collector.clients.sum() == sum(sizes) == 20_000
        assert max(sizes) <= 2**14 // plan.channels.code.n


class TestBadInput:
    """Each is rejected with a clear error, counted, and nothing already aggregated is lost."""

    def filled(self, **options):
        plan = Plan.choose(20_000, 20, 3.0, **{"hash_seed": 5, **options})
        collector = Collector(plan)
        seeds, sent = plan.reports(BITS, np.ones(4, bool), np.random.default_rng(1))
        collector.add(seeds, sent)
        return plan, collector, seeds, sent

    @pytest.mark.parametrize(
        ("spoil", "reason", "message"),
        [
            (lambda seeds, sent: (seeds, sent[:-1]), "size", r"sent has shape \(3,\)"),
            (lambda seeds, sent: (seeds, sent.astype(float)), "type", "sent has type float64"),
            (lambda seeds, sent: (seeds, sent.astype("u8")), "type", "sent has type uint64"),
            (lambda seeds, sent: (seeds.astype(float), sent), "type", "seeds has .* type float64"),
            (lambda seeds, sent: (seeds.astype("i8"), sent), "type", "seeds has .* type int64"),
            (lambda seeds, sent: (seeds[None], sent), "type", r"seeds has shape \(1, 4\)"),
            (
                lambda seeds, sent: (seeds, sent + np.uint8(200)),
                "symbol",
                "sent holds the symbol 2",
            ),
        ],
    )
    def test_symbols(self, spoil, reason, message):
        _, collector, seeds, sent = self.filled()
        before = collector.sums.copy()
        with pytest.raises(ReportError, match=f"{message}.*; nothing of it was added"):
            collector.add(*spoil(seeds, sent))
        assert collector.rejected == {reason: 4}
        np.testing.assert_array_equal(collector.sums, before)
        assert collector.clients.sum() == 4

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_numbers(self, value):
        _, collector, seeds, sent = self.filled(protocol="Cash", count=4)
        before = collector.sums.copy()
        sent[2, 1, 5] = value
        with pytest.raises(ReportError, match="NaN or infinity"):
            collector.add(seeds, sent)
        assert collector.rejected == {"not finite": 4}
        np.testing.assert_array_equal(collector.sums, before)

    def test_bytes(self):
        plan, collector, seeds, sent = self.filled()
        other = Plan.choose(20_000, 20, 3.0, hash_seed=6)
        good = plan.to_bytes(seeds, sent)
        errors = collector.receive(
            [good[0], good[1][:-3], b"GET / HTTP/1.1", *other.to_bytes(seeds, sent), good[2]]
        )
        assert collector.rejected == {"size": 1, "foreign": 1, "parameters": 4}
        assert [error.reason for error in errors] == ["size", "foreign"] + 4 * ["parameters"]
        assert "other public parameters" in str(errors[-1])
        assert collector.clients.sum() == 6
        both = collector + collector
        assert both.rejected["parameters"] == 8

    def test_collectors_of_other_plans_do_not_add_up(self):
        _, collector, _, _ = self.filled()
        with pytest.raises(ValueError, match="other public parameters"):
            collector + Collector(Plan.choose(20_000, 20, 3.0, hash_seed=6))
        assert collector.clients.sum() == 4

    def test_no_reports(self):
        with pytest.raises(ValueError, match="clients = 0"):
            Collector(Plan.choose(100, 20, 1.0)).histogram()

    def test_a_group_without_a_client_is_left_out(self):
        _, collector, _, _ = self.filled(groups=200)
        assert (collector.clients == 0).any()
        assert collector.histogram() == []

    @pytest.mark.parametrize("protocol", ["Prot", "Cash"])
    def test_numbers_of_a_machine_with_another_byte_order(self, protocol):
        plan = Plan.choose(100, 20, 1.0, protocol=protocol)
        seeds, sent = plan.reports(BITS, np.ones(len(BITS), bool), np.random.default_rng(1))
        mine, theirs = Collector(plan), Collector(plan)
        mine.add(seeds, sent)
        theirs.add(seeds.astype(">u8"), sent.astype(sent.dtype.newbyteorder(">")))
        np.testing.assert_array_equal(mine.sums, theirs.sums)

    @pytest.mark.parametrize(
        ("bits", "holds", "message"),
        [
            (BITS, np.ones(3, bool), r"holds has shape \(3,\)"),
            (BITS, np.ones(4), "holds has shape .* and type float64"),
            (BITS[0], [True], r"bits has shape \(20,\)"),
        ],
    )
    def test_wrong_holds(self, bits, holds, message):
        with pytest.raises(ValueError, match=message):
            Plan.choose(100, 20, 1.0).reports(bits, holds, np.random.default_rng(1))


class TestOneCall:
    def test_strings(self):
        items = ["ANNA"] * 5000 + [None] * 3000 + ["BOB"] * 2000
        lines = succinct_histogram(items, 3.0, seed=2, packing=NAMES)
        assert names_of(lines) == ["ANNA", "BOB"]

    def test_seeds_of_any_kind(self):
        rows = BITS[np.repeat([0, 1], [3000, 1000])]
        plain = succinct_histogram(rows, 3.0, seed=1)
        for seed in (1.0, np.int64(1)):
            again = succinct_histogram(rows, 3.0, seed=seed)
            assert [line.frequency for line in again] == [line.frequency for line in plain]
        with pytest.raises(ValueError, match=r"^seed = -1: needs a whole number from 0"):
            succinct_histogram(rows, 3.0, seed=-1)

    def test_bits_and_an_executor(self):
        rows = BITS[np.repeat([0, 1], [5000, 2000])]
        here = succinct_histogram(rows, 3.0, seed=1)
        with ThreadPoolExecutor(2) as executor:
            there = succinct_histogram(rows, 3.0, seed=1, executor=executor)
        assert [line.frequency for line in here] == [line.frequency for line in there]
        np.testing.assert_array_equal(here[0].item, BITS[0])

    @pytest.mark.parametrize(
        ("items", "packing", "message"),
        [
            ([], NAMES, "items holds no client"),
            (np.empty((0, 20)), None, "items holds no client"),
            ([None, None], NAMES, "items holds no item: every client is empty"),
            (["ANNABEL"], NAMES, "k = 20 bits hold at most 4 letters"),
            (["ANNA"], None, "needs rows of bits, or a packing"),
            ([[0, 1, 2]], None, "only 0 and 1 are bits"),
            ("ANNA", NAMES, "items = 'ANNA': needs one string a client"),
        ],
    )
    def test_wrong_items(self, items, packing, message):
        with pytest.raises(ValueError, match=message):
            succinct_histogram(items, 1.0, seed=1, packing=packing)
