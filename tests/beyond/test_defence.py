"""Cheats: who is refused, and how many it takes, against closed forms.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

from itertools import product

import numpy as np
import pytest
from strategies import ITEM, PAPER

from ldpcash import Cash, Prot, ReportSum, SCLDecoder
from ldpcash.beyond.bodies import body
from ldpcash.beyond.defence import (
    cheating_total,
    cheats_needed,
    cheats_to_shift,
    item_at_distance,
    items_served,
    planted_items,
    simulated_cheats,
)
from ldpcash.histogram.plan import Plan

X = (2.0 * PAPER.encode(ITEM) - 1) / 8
EVERYBODY = np.ones(20_000, dtype=bool)


def protocols(epsilon):
    return [
        Cash(PAPER, epsilon),
        Prot(PAPER, epsilon),
        Prot(PAPER, epsilon, SCLDecoder(PAPER), decision="soft"),
    ]


def limit_of(protocol):
    return protocol.limit if isinstance(protocol, Cash) else 0.0


@pytest.mark.parametrize("protocol", protocols(4.0))
def test_one_client_decides_alone_unless_it_is_checked(protocol):
    false = ITEM ^ item_at_distance(PAPER, 32)
    holds = np.ones(2000, dtype=bool)
    sent = protocol.reports(np.tile(ITEM, (2000, 1)), holds, np.random.default_rng(1))
    cheat = 1e6 * (2.0 * PAPER.encode(false) - 1)
    plain, total = ReportSum(64), ReportSum(protocol)
    for reports in (plain, total):
        reports.add(np.vstack([sent, cheat]))
    assert protocol.estimate(plain.mean).bits.tolist() == false.tolist()
    assert protocol.estimate(total.mean).bits.tolist() == ITEM.tolist()
    assert (total.count, total.rejected) == (2000, 1)


class TestCheats:
    @pytest.mark.parametrize("goal", ["promote", "bury"])
    @pytest.mark.parametrize("protocol", protocols(1.0))
    def test_each_of_them_passes_the_check(self, protocol, goal):
        false = ITEM ^ item_at_distance(PAPER, 16)
        limit = limit_of(protocol) * (1 - 1e-12)
        sums = [cheating_total(protocol, ITEM, false, m, limit, goal) for m in range(10)]
        assert protocol.honest(np.diff(sums, axis=0)).all()

    @pytest.mark.parametrize("which", [0, 1, 2])
    def test_as_many_as_the_closed_form_says(self, which, subtests):
        """A million clients: noise moves the number by a few parts in a hundred, and a server that
        rounds asks for up to a tenth more, because every position has to fall."""
        for epsilon, (goal, weight) in product([1.0, 4.0], [("bury", 16), ("promote", 32)]):
            with subtests.test(epsilon=epsilon, goal=goal):
                protocol = protocols(epsilon)[which]
                limit = limit_of(protocol)
                found = simulated_cheats(
                    protocol, 0.6, 10**6, weight, goal, limit, 100, np.random.default_rng(1)
                )
                needed = cheats_needed(protocol, 600_000, weight, limit, goal)
                assert 0.98 < found / needed < (1.1 if which == 1 else 1.03)

    def test_rounding_halves_what_buries_an_item(self):
        """9 of 16 positions are enough for a server that rounds, and a soft one counts them all."""
        found = [
            simulated_cheats(protocol, 0.6, 10**6, 16, "bury", 0.0, 100, np.random.default_rng(1))
            for protocol in protocols(4.0)[1:]
        ]
        assert 9 / 16 < found[0] / found[1] < 10 / 16

    def test_fewer_do_not_win_and_one_may_be_enough(self):
        """Beside one honest client that holds nothing, the noise of one report has to be beaten:
        6.4 in the direction of a word, against 73."""
        cash = Cash(PAPER, 1.0)
        args = (64, "promote", limit_of(cash), 100, np.random.default_rng(1))
        assert simulated_cheats(cash, 0.0, 1, *args) == 1

    def test_those_who_never_win_are_told(self):
        rng = np.random.default_rng(1)
        with pytest.raises(ValueError, match=r"0\.6, 0\.01: 2400 cheats do not reach the goal"):
            simulated_cheats(Cash(PAPER, 4.0), 0.6, 1000, 16, "bury", 0.01, 20, rng)
        with pytest.raises(ValueError, match=r"0\.0, 0\.0: 1 cheats do not reach the goal"):
            simulated_cheats(Prot(PAPER, 1.0), 0.0, 10_000, 16, "promote", 0.0, 20, rng)

    def test_nobody_needs_to_bury_what_nobody_holds(self):
        rng = np.random.default_rng(1)
        assert simulated_cheats(Prot(PAPER, 1.0), 0.0, 1000, 16, "bury", 0.0, 20, rng) == 0

    @pytest.mark.parametrize("frequency", [0.4, 0.6])
    @pytest.mark.parametrize("protocol", protocols(2.0)[:2])
    def test_the_frequency_shifts_as_the_closed_form_says(self, protocol, frequency):
        """In the mean, so honest clients add no noise here. The number of cheats is rounded, which
        moves the shift by half a cheat's part: up to 0.002."""
        clients, limit = 10_000, limit_of(protocol)
        cheats = round(cheats_to_shift(protocol, frequency, clients, 0.2, limit))
        if isinstance(protocol, Cash):
            sent = np.tile(limit * X, (cheats, 1))
        else:
            sent = np.zeros((cheats, 64))
            turn = np.arange(cheats) % 64
            sent[np.arange(cheats), turn] = protocol.amplitude * np.sign(X[turn])
        after = protocol.estimate((clients * frequency * X + sent.sum(axis=0)) / (clients + cheats))
        assert after.bits.tolist() == ITEM.tolist()
        assert after.frequency - frequency == pytest.approx(0.2, abs=0.0021)

    def test_a_shift_that_no_number_of_cheats_brings(self):
        prot = Prot(PAPER, 8.0)  # a report counts 1.0007
        assert cheats_to_shift(prot, 0.6, 100, 0.4, 0.0) > 50_000
        for frequency, shift in ((0.6, 0.41), (0.95, 0.1)):
            with pytest.raises(ValueError, match=rf"shift = {shift}: needs less than .* 1\.00067"):
                cheats_to_shift(prot, frequency, 100, shift, 0.0)
        with pytest.raises(ValueError, match=r"shift = -0\.1: needs a positive number"):
            cheats_to_shift(prot, 0.6, 100, -0.1, 0.0)

    def test_bad_arguments(self):
        with pytest.raises(ValueError, match=r"weight = 5: the code has \[16, 32, 48, 64\]"):
            item_at_distance(PAPER, 5)
        with pytest.raises(ValueError, match="weight = 0: "):  # the item itself
            item_at_distance(PAPER, 0)
        prot, false = Prot(PAPER, 1.0), ITEM ^ item_at_distance(PAPER, 16)
        with pytest.raises(ValueError, match="goal = 'burry': choose one of promote, bury"):
            cheats_needed(prot, 100, 16, 0.0, "burry")
        with pytest.raises(ValueError, match="goal = 'burry': choose one of promote, bury"):
            cheating_total(prot, ITEM, false, 5, 0.0, "burry")
        with pytest.raises(ValueError, match="goal = 'win': choose one of promote, bury"):
            simulated_cheats(Prot(PAPER, 1.0), 0.5, 10, 16, "win", 0.0, 1, np.random.default_rng(1))


class TestPlanted:
    PLAN = Plan.choose(100_000, 40, 2.0)

    def test_a_report_serves_an_item_if_its_symbol_is_the_item_s(self):
        """Without noise, at epsilon = 40, honest clients send the item's own symbols."""
        loud = Plan.choose(1000, 8, 40.0, width=3)
        channels, rng = loud.channels, np.random.default_rng(1)
        items = rng.integers(0, 2, (5, 8), dtype=np.uint8)
        channel = loud.channel_of(items)
        served, symbols = items_served(channels, items, channel)
        seeds = np.arange(len(served), dtype=np.uint64)
        assert len(seeds) == channels.count * channels.views.count
        sent = np.array(
            [channels.reports(items, channel, np.full(len(seeds), i), seeds, rng) for i in range(5)]
        )
        for seed in range(0, len(seeds), 97):
            counts = np.bincount(sent[:, seed], minlength=8)
            assert served[seed] == counts.max() == counts[symbols[seed]]

    def test_tickets_take_several_items_from_cheats(self):
        """2,000 cheats are 1.4 and 3.1 times what each of six items needs, in the mean."""
        names, rng = body("census", 40), np.random.default_rng(2)
        found = {
            chosen: [
                planted_items(self.PLAN, names, 100_000, 6, 2000, chosen, rng) for _ in range(8)
            ]
            for chosen in (True, False)
        }
        assert min(found[True]) > max(found[False])

    def test_no_cheats_plant_nothing_and_for_one_item_a_seed_is_as_good_as_any(self):
        names, rng = body("census", 40), np.random.default_rng(3)
        assert planted_items(self.PLAN, names, 100_000, 6, 0, True, rng) == 0
        for chosen in (True, False):
            assert planted_items(self.PLAN, names, 100_000, 1, 1500, chosen, rng) == 1

    def test_wrong_arguments(self):
        names, rng = body("census", 40), np.random.default_rng(1)
        with pytest.raises(ValueError, match=r"^plan = one of CashChannels"):
            planted_items(Plan.choose(100, 40, 1.0, protocol="Cash"), names, 9, 1, 1, True, rng)
        with pytest.raises(ValueError, match=r"^false = 0: needs a whole number from 1"):
            planted_items(self.PLAN, names, 100, 0, 1, True, rng)
        with pytest.raises(ValueError, match=r"^cheats = -1: needs a whole number from 0"):
            planted_items(self.PLAN, names, 100, 1, -1, True, rng)
