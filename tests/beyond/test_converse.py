"""The converse against the formulas' maxima by brute force, linear programs and random channels."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from ldpcash.beyond.converse import (
    clients_needed,
    least_error,
    least_frequency,
    most_told,
    most_told_of_all,
)
from ldpcash.paper.theory import simplex_error, strength_at


class TestConverse:
    """What no randomizer can beat: closed forms, linear programs, and random randomizers."""

    EPSILONS = (0.01, 0.25, 0.5, 1.0, math.log(3), 1.5, 2.0, 4.0, 8.0)

    @staticmethod
    def told(channel, empty, f):
        """Nats that a report of a channel (items, reports) tells, over f^2 / 2, from its law."""
        rows = f * channel + (1 - f) * empty
        mean = rows.mean(axis=0)
        return 2 * (rows * np.log(rows / mean)).sum(axis=1).mean() / f**2

    def test_known_values(self):
        """To second order in f: .0160, .0679, .3453, 2.689, 40.17, 2872."""
        epsilons = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
        known = (0.0160, 0.0679, 0.3453, 2.689, 40.17, 2872)
        for epsilon, value in zip(epsilons, known, strict=True):
            assert most_told(epsilon) == pytest.approx(value, rel=4e-3)

    def test_the_closed_form_is_the_concave_envelope(self):
        """By brute force: all pairs of an s below 1 and one above, with the best a for each."""
        for epsilon in self.EPSILONS:
            E = math.exp(epsilon)
            s = np.geomspace(1 / E, E, 1201)
            a = np.geomspace(1, E, 201)[:, None] * s / E  # from s / E to s
            g = (np.maximum(a * E - 1, 0) * np.maximum(1 - a, 0) / s).max(axis=0)
            low, high = np.meshgrid(np.flatnonzero(s < 1), np.flatnonzero(s > 1))
            share = (s[high] - 1) / (s[high] - s[low])
            brute = (share * g[low] + (1 - share) * g[high]).max()
            assert brute <= most_told(epsilon) * (1 + 1e-9)
            assert brute >= most_told(epsilon) * (1 - 2e-3)

    def test_a_small_frequency_is_the_limit(self):
        for epsilon in self.EPSILONS:
            assert most_told(epsilon, 1e-7) == pytest.approx(most_told(epsilon), rel=2e-4)
        for epsilon in (12.0, 20.0, 30.0, 39.0):
            small = 1e-3 * math.exp(-epsilon)
            assert most_told(epsilon, small) == pytest.approx(most_told(epsilon), rel=1e-3)
            whole = most_told(epsilon, 1.0) / 2  # nats that a holder tells, who is the only kind
            assert 0.5 * epsilon < whole < epsilon

    @pytest.mark.parametrize("items", [3, 8, 30])
    def test_it_is_what_linear_programs_find(self, items):
        """All extreme randomizers send reports of which each input is likely or E times as likely
        (Kairouz, Oh and Viswanath 2016). For M items alike it matters how many of them are likely:
        a program in 2 (M + 1) numbers. With few items it finds less, and with more it comes close.
        """
        for epsilon in (0.25, 1.0, 2.0, 4.0):
            E = math.exp(epsilon)
            for f in (0.01, 0.3, 1.0):
                gains, of_items, of_empty = [], [], []
                for count in range(items + 1):
                    r = np.where(np.arange(items) < count, E, 1.0)
                    for s in (1.0, E):
                        rows = f * r + (1 - f) * s
                        gains.append((rows * np.log(rows / rows.mean())).mean())
                        of_items.append(r.mean())
                        of_empty.append(s)
                found = linprog(-np.array(gains), A_eq=[of_items, of_empty], b_eq=[1, 1])
                told = -2 * found.fun / f**2
                assert told <= most_told(epsilon, f) * (1 + 1e-6)
                if items == 30:
                    assert told >= most_told(epsilon, f) * 0.985

    def test_no_random_randomizer_tells_more(self):
        """Channels with many kinds of reports, items that are not alike, and random mixtures."""
        rng = np.random.default_rng(3)
        for trial in range(150):
            epsilon, f = rng.choice(self.EPSILONS), rng.choice([0.003, 0.1, 0.5, 1.0])
            items, reports = rng.integers(2, 12), rng.integers(2, 40)
            power = rng.random((items + 1, reports))
            power = np.round(power) if trial % 2 else power
            weights = rng.dirichlet(np.ones(reports))
            channel = weights * np.exp(epsilon * power / 2)
            channel /= channel.sum(axis=1, keepdims=True)
            spread = np.log(channel.max(axis=0) / channel.min(axis=0)).max()
            assert spread <= epsilon * (1 + 1e-12)
            told = self.told(channel[1:], channel[0], f)
            assert told <= most_told(spread, f) * (1 + 1e-9)

    def test_without_a_special_empty_client(self):
        """(E - 1)^2 / (4 E): the variance of two values around their mean (Bhatia and Davis)."""
        for epsilon in self.EPSILONS:
            E = math.exp(epsilon)
            a = np.geomspace(1 / E, 1, 100_001)
            brute = ((a * E - 1) * (1 - a)).max()
            assert most_told_of_all(epsilon) == pytest.approx(brute, rel=1e-6)
            assert most_told_of_all(epsilon) <= most_told(epsilon)

    def test_clients_needed(self):
        """Fano, by hand; and no server of ours does with less."""
        assert clients_needed(1, 0.0, 0.5) == pytest.approx(2 * math.log(2))
        assert clients_needed(1, 0.5, 0.5) == 0
        entropy = -(0.1 * math.log(0.1) + 0.9 * math.log(0.9))
        assert clients_needed(8, 0.1, 0.5) == pytest.approx(2 * (7.2 * math.log(2) - entropy))
        with pytest.raises(ValueError, match="error = 2"):
            clients_needed(8, 2, 0.5)
        for epsilon in (0.5, 2.0):
            strength = strength_at(lambda snr: simplex_error(8, snr), 1e-2)
            N = strength**2 / most_told(epsilon) / 0.1**2  # at f = 0.1
            assert clients_needed(8, 1e-2, most_told(epsilon) * 0.1**2 / 2) < N

    def test_least_frequency(self):
        """It is where `clients_needed` says so many clients; and none if all are not enough."""
        for epsilon, clients in ((0.5, 1000), (2.0, 10**4), (4.0, 10**6)):
            f = least_frequency(8, 1e-2, epsilon, clients)
            needed = clients_needed(8, 1e-2, f**2 / 2 * most_told(epsilon, f))
            assert needed == pytest.approx(clients, rel=1e-3)
        assert least_frequency(8, 1e-2, 0.1, 1000) == math.inf
        with pytest.raises(ValueError, match="clients = 0"):
            least_frequency(8, 1e-2, 1.0, 0)

    def test_least_error(self):
        """The other way round; from guessing, without holders or with almost no privacy loss, down
        to no error."""
        for epsilon, f in ((0.2, 0.5), (1.0, 0.1)):
            error = least_error(8, epsilon, f, 1000)
            assert 0 < error < 1 - 2**-8
            needed = clients_needed(8, error, f**2 / 2 * most_told(epsilon, f))
            assert needed == pytest.approx(1000, rel=1e-6)
        assert least_error(8, 1.0, 0.0, 1000) == pytest.approx(1 - 2**-8, abs=1e-9)
        assert least_error(8, 1e-6, 0.5, 1000) > 0.95
        assert least_error(8, 4.0, 0.5, 1000) == 0
        with pytest.raises(ValueError, match="clients = 0"):
            least_error(8, 1.0, 0.5, 0)
