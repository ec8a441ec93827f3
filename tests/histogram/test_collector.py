"""The server's sums: what they take in, and what they do not."""

import pickle

import numpy as np
import pytest
from strategies import BITS

from ldpcash.histogram.collector import Collector
from ldpcash.histogram.plan import Plan
from ldpcash.histogram.wire import ReportError


@pytest.mark.parametrize("options", [{}, {"protocol": "Cash", "count": 4}], ids=str)
def test_bytes_give_the_same_as_arrays_and_sums_add_up(options):
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


@pytest.mark.parametrize("protocol", ["Prot", "Cash"])
def test_numbers_of_a_machine_with_another_byte_order(protocol):
    plan = Plan.choose(100, 20, 1.0, protocol=protocol)
    seeds, sent = plan.reports(BITS, np.ones(len(BITS), bool), np.random.default_rng(1))
    mine, theirs = Collector(plan), Collector(plan)
    mine.add(seeds, sent)
    theirs.add(seeds.astype(">u8"), sent.astype(sent.dtype.newbyteorder(">")))
    np.testing.assert_array_equal(mine.sums, theirs.sums)


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
