"""The explorer: its data beside the simulator and closed forms, its page in a browser."""

import json
import re
import sys
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

from ldpcash import gaussian_sigma, sweep
from ldpcash.paper.theory import biorthogonal_error, signal_to_noise, simplex_error, union_bound
from ldpcash.simulation.trials import binomial_interval

ROOT = Path(__file__).parents[1]

sys.path.insert(0, str(ROOT / "tools" / "site"))
import explorer  # noqa: E402

TABLE = json.loads(explorer.FILE.read_text())
CURVES = explorer.all_curves()


def random_places(count, seed, wanted=lambda curve, i: True):
    """Curves and epsilons out of all, as indices."""
    rng = np.random.default_rng(seed)
    while count:
        c, i = int(rng.integers(len(CURVES))), int(rng.integers(len(explorer.EPSILONS)))
        if wanted(TABLE["curves"][c], i):
            count -= 1
            yield c, i


class TestExplorerData:
    def test_is_complete_and_small(self):
        assert explorer.FILE.stat().st_size < 650_000
        assert len(TABLE["curves"]) == len(CURVES)
        for curve in TABLE["curves"]:
            assert {len(column) for column in curve.values()} == {len(explorer.EPSILONS)}

    def test_is_what_the_simulator_gives(self):
        """To the last count; of points that take little time, those with few and many errors."""
        quick = list(random_places(40, 1, lambda curve, i: curve["trials"][i] <= 8192))
        for limit in (explorer.FEW_TRIALS, explorer.MANY_TRIALS):
            mine = [
                (c, i)
                for c, i in quick
                if (TABLE["curves"][c]["errors"][i] >= explorer.MIN_ERRORS)
                is (limit == explorer.MANY_TRIALS)
            ]
            assert mine
            points = [explorer.point(*CURVES[c], explorer.EPSILONS[i]) for c, i in mine]
            rows = sweep(points, explorer.SEED, min_errors=explorer.MIN_ERRORS, max_trials=limit)
            for (c, i), row in zip(mine, rows, strict=True):
                curve = TABLE["curves"][c]
                assert (curve["errors"][i], curve["trials"][i]) == (row.errors, row.trials)
                assert curve["off"][i] == round(row.frequency_error / explorer.OFF_UNIT)
                assert curve["off_se"][i] == round(row.frequency_error_se / explorer.OFF_UNIT)

    def test_a_curve_is_made_as_it_was(self):
        """The whole way, with its change from many to few trials."""
        chosen = [
            c
            for c, curve in enumerate(TABLE["curves"])
            if sum(curve["trials"]) < 180_000 and curve["errors"][-1] == 0
        ]
        c = chosen[0]
        (rows,) = explorer.simulate([CURVES[c]])
        assert [row.errors for row in rows] == TABLE["curves"][c]["errors"]
        assert [row.trials for row in rows] == TABLE["curves"][c]["trials"]

    def test_follows_the_closed_forms(self):
        """False alarms: at most three for each of 6300 points, of 5e-11 each.

        The list decoder is no better than maximum likelihood, and on these two codes hardly worse.
        """
        known = {
            explorer.codes()[256, "ga"]: biorthogonal_error,
            explorer.codes()[256, "quiet"]: simplex_error,
        }
        assert len(known) == 2
        for c, (protocol, code, clients, frequency) in enumerate(CURVES):
            if protocol != "Cash":
                continue
            for i, epsilon in enumerate(explorer.EPSILONS):
                sigma = gaussian_sigma(epsilon, explorer.DELTA, code.sensitivity)
                snr = signal_to_noise(frequency, clients, sigma)
                counts = (TABLE["curves"][c][name][i] for name in ("errors", "trials"))
                low, high = binomial_interval(*counts, 1 - 1e-10)
                assert low <= union_bound(code.weight_distribution(), code.n, snr)
                if code in known:
                    exact = known[code](explorer.K, snr)
                    assert low <= 1.1 * exact
                    assert high >= exact

    def test_a_bler_too_low_to_be_seen_stays_low(self):
        """What the shorter runs rest on. False alarms: at most 1e-10 for each of 28000 points."""
        for curve in TABLE["curves"]:
            pairs = list(zip(curve["errors"], curve["trials"], strict=True))
            unseen = [binomial_interval(*pair, 1 - 1e-10)[1] for pair in pairs if pair[0] == 0]
            first = next((i for i, (errors, _) in enumerate(pairs) if errors == 0), len(pairs))
            for pair in pairs[first:]:
                assert binomial_interval(*pair, 1 - 1e-10)[0] <= unseen[0]

    def test_soft_decoding_never_loses(self):
        """Of `Prot`, beyond chance: false alarms at most 1e-10 for each of 6300 points."""
        counts = {}
        for curve, (protocol, *setting) in zip(TABLE["curves"], CURVES, strict=True):
            for i, pair in enumerate(zip(curve["errors"], curve["trials"], strict=True)):
                counts[protocol, *setting, i] = binomial_interval(*pair, 1 - 1e-10)
        for (protocol, *setting), (low, _) in counts.items():
            if protocol == "Prot, soft":
                assert low <= counts["Prot", *setting][1]

    def test_the_best_randomizer_has_the_lowest_curves(self):
        """Of all pure ones with soft decoding, from epsilon = 2 on, beyond chance: false alarms at
        most 1e-10 for each of 1200 points."""
        counts = {}
        for curve, (protocol, code, *setting) in zip(TABLE["curves"], CURVES, strict=True):
            if code == explorer.codes_of("Blank")[0]:
                for i, pair in enumerate(zip(curve["errors"], curve["trials"], strict=True)):
                    counts[protocol, *setting, i] = binomial_interval(*pair, 1 - 1e-10)
        start = explorer.EPSILONS.index(2.0)
        for (protocol, *setting), (low, _) in counts.items():
            if protocol == "Blank" and setting[-1] >= start:
                for other in ("Prot, soft", "Subset selection", "Local hashing", "k-ary response"):
                    assert low <= counts[other, *setting][1]

    def test_the_page_s_words_are_true(self):
        words = (ROOT / "tools" / "site" / "explorer.md").read_text()
        for fact in (
            f"an item of {explorer.K} bits",
            f"had seen {explorer.MIN_ERRORS} errors, or for {explorer.MANY_TRIALS:,} trials",
            f"or for {explorer.FEW_TRIALS:,} if no error",
        ):
            assert fact in words
        assert explorer.DELTA == 1e-4
        assert r"\delta = 10^{-4}" in words


def expected_bler(curve, i):
    """What the page should say of a BLER, as numbers: (rate, low, high) or (bound,)."""
    if curve["errors"][i]:
        ends = binomial_interval(curve["errors"][i], curve["trials"][i])
        return (curve["errors"][i] / curve["trials"][i], *ends)
    first = next(j for j in range(i, -1, -1) if j == 0 or curve["errors"][j - 1])
    return (min(binomial_interval(0, curve["trials"][j])[1] for j in range(first, i + 1)),)


def shown(browser):
    """What the explorer says, as numbers."""
    text = browser.run("document.getElementById('explorer-result').innerText")
    text = text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{NON-BREAKING HYPHEN}", "-")
    number = r"(\d[\d.]*(?:e-?\d+)?)"
    bler = re.search(rf"BLER: below {number}", text) or re.search(
        rf"BLER: {number} .*interval {number} to {number}\)", text
    )
    off = re.search(rf"Frequency error: {number} ± {number}", text)
    return text, [float(x) for x in bler.groups()], [float(x) for x in off.groups()]


def check(browser, c, i):
    """Hold what is shown against the table."""
    curve = TABLE["curves"][c]
    protocol, code, clients, frequency = CURVES[c]
    text, bler, off = shown(browser)
    epsilon = explorer.EPSILONS[i]
    assert f"Setting: {protocol}, ε = {epsilon:g}, f = {frequency:g}, N = {clients:,}" in text
    assert f"Code: ({code.n}, {explorer.K})" in text
    assert bler == pytest.approx(expected_bler(curve, i), rel=0.06)  # two digits, at least
    assert off[0] == pytest.approx(curve["off"][i] * explorer.OFF_UNIT, rel=0.006)
    assert off[1] == pytest.approx(curve["off_se"][i] * explorer.OFF_UNIT, rel=0.06)


CUT_OFF = """(() => {
  const frame = document.querySelector("#explorer-picture svg").getBoundingClientRect();
  return [...document.querySelectorAll("#explorer-picture text")].filter((text) => {
    const box = text.getBoundingClientRect();
    return box.left < frame.left || box.right > frame.right + 0.5 || box.bottom > frame.bottom;
  }).map((text) => text.textContent);
})()"""
OVERLAPPING = """(() => {
  const legend = [...document.querySelectorAll("#explorer-picture svg > text")].slice(0, 2);
  const [one, other] = legend.map((text) => text.getBoundingClientRect());
  const sameLine = Math.abs(one.top - other.top) < 12;
  return sameLine && one.right > other.left - 30 ? legend.map((text) => text.textContent) : [];
})()"""


@pytest.fixture
def open_explorer(browser, site):
    browser.open(f"{site.as_uri()}/explorer.html")
    return browser


def choose(browser, c, i):
    """Choose a place in the table."""
    protocol, code, clients, frequency = CURVES[c]
    n, rule = next(choice for choice, same in explorer.codes().items() if same == code)
    set_controls(
        browser,
        protocol=protocol,
        rule=rule,
        epsilon=i,
        frequency=explorer.FREQUENCIES.index(frequency),
        clients=explorer.CLIENTS.index(clients),
        length=explorer.LENGTHS.index(n),
    )


def set_controls(browser, **values):
    """Set some controls at once, as if a reader had."""
    script = "".join(
        f"document.getElementById('explorer-{name}').value = {json.dumps(value)};"
        for name, value in values.items()
    )
    browser.run(f"{script} document.getElementById('explorer').dispatchEvent(new Event('input'))")


class TestExplorer:
    def test_shows_the_right_numbers(self, open_explorer):
        rare = random_places(10, 3, lambda curve, i: curve["errors"][i] == 0)
        for c, i in [*random_places(40, 2), *rare]:
            choose(open_explorer, c, i)
            check(open_explorer, c, i)
            protocol, code, *_ = CURVES[c]
            if protocol == "Cash":
                sigma = gaussian_sigma(explorer.EPSILONS[i], explorer.DELTA, code.sensitivity)
                said = re.search(r"standard deviation . = ([\d.]+)", shown(open_explorer)[0])
                assert float(said.group(1)) == pytest.approx(sigma, rel=0.006)
        assert open_explorer.complaints == []

    def test_a_reader_with_a_keyboard_can_use_it(self, open_explorer):
        """Tab goes through the controls in order; arrows move the sliders and what is shown."""
        open_explorer.run("document.getElementById('explorer-protocol').focus()")
        controls = ["protocol", "beside", "epsilon", "frequency", "clients", "length", "rule"]
        for name in controls:
            active = open_explorer.run("document.activeElement.id")
            assert active == f"explorer-{name}"
            before = open_explorer.run("document.getElementById('explorer-result').innerText")
            if name not in ("protocol", "beside", "rule"):  # choices open a list of their own
                open_explorer.press("ArrowRight", 39)
                after = open_explorer.run("document.getElementById('explorer-result').innerText")
                assert after != before
            open_explorer.press("Tab", 9)
        c = CURVES.index(("Cash", explorer.codes()[128, "pw"], 2000, 0.7))
        check(open_explorer, c, explorer.EPSILONS.index(1.75))
        for key, code in (("Home", 36), ("End", 35)):
            open_explorer.run("document.getElementById('explorer-epsilon').focus()")
            open_explorer.press(key, code)
            i = 0 if key == "Home" else len(explorer.EPSILONS) - 1
            check(open_explorer, c, i)

    def test_a_screen_reader_is_told_everything(self, open_explorer):
        """The browser's own accessibility tree."""
        open_explorer.run("document.querySelector('.explorer-table').open = true")
        tree = open_explorer.send("Accessibility.getFullAXTree")["nodes"]
        nodes = [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in tree
            if not node["ignored"]
        ]
        assert [name for role, name in nodes if role == "slider"] == [
            "Privacy loss ε",
            "True frequency f",
            "Clients N",
            "Code length n",
        ]
        spoken = (
            "[...document.querySelectorAll('#explorer [type=range]')].map(e => e.ariaValueText)"
        )
        assert open_explorer.run(spoken) == ["1.5", "0.6", "1,000", "64"]
        choices = [name for role, name in nodes if role in ("combobox", "ComboBoxMenuButton")]
        assert choices == ["Protocol", "Beside it", "Code construction"]
        assert [role for role, _ in nodes].count("status") == 1
        pictures = [name for role, name in nodes if role in ("image", "img")]
        assert any("Cash, filled circles, is chosen" in picture for picture in pictures)
        cells = [name for role, name in nodes if role in ("cell", "gridcell")]
        assert len(cells) == 4 * len(explorer.EPSILONS)
        heads = [name for role, name in nodes if role == "rowheader"]
        assert [float(name) for name in heads] == explorer.EPSILONS

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_is_readable_in_light_and_dark(self, open_explorer, scheme):
        """Contrast of 4.5 to 1, as WCAG 2 asks for text; and of 3 to 1 for the lines."""
        open_explorer.run(f"document.documentElement.dataset.theme = '{scheme}'")
        for selector, key, least in (
            ("#explorer-result p", "color", 4.5),
            (".explorer-controls label", "color", 4.5),
            ("#explorer-picture text", "fill", 4.5),
            ("#explorer-picture .chosen polyline", "stroke", 3),
            ("#explorer-picture .other polyline", "stroke", 3),
        ):
            ink = open_explorer.run(f"getComputedStyle(document.querySelector('{selector}')).{key}")
            paper = open_explorer.run(
                f"(() => {{ let e = document.querySelector('{selector}'); let c;"
                " do { c = getComputedStyle(e).backgroundColor; e = e.parentElement; }"
                " while (e && /, 0\\)/.test(c)); return c; })()"
            )
            assert contrast(ink, paper) >= least, (selector, ink, paper)

    def test_any_protocol_stands_beside_any(self, open_explorer):
        table = (
            "[...document.querySelectorAll('#explorer-table [scope=col]')].map(e => e.innerText)"
        )
        open_explorer.run("document.querySelector('.explorer-table').open = true")
        for chosen, beside in product(explorer.PROTOCOLS, repeat=2):
            set_controls(open_explorer, protocol=chosen, beside=beside)
            wanted = list(dict.fromkeys([chosen, beside]))
            heads = [f"{name} {what}" for name in wanted for what in ("BLER", "frequency error")]
            assert open_explorer.run(table) == ["ε", *heads]
            label = open_explorer.run("document.querySelector('#explorer-picture svg').ariaLabel")
            assert f"{chosen}, filled circles" in label
            assert (f"{beside}, open squares" in label) is (chosen != beside)
        assert open_explorer.complaints == []

    def test_the_table_has_the_numbers_of_both(self, open_explorer):
        """Frequency errors, which differ from protocol to protocol at every epsilon."""
        cells = (
            "[...document.querySelectorAll('#explorer-table tr')].slice(1)"
            ".map((row) => [...row.querySelectorAll('td')].map((cell) => cell.innerText))"
        )
        open_explorer.run("document.querySelector('.explorer-table').open = true")
        paper = explorer.codes()[64, "pw"]
        for chosen, beside in permutations(explorer.PROTOCOLS, 2):
            set_controls(open_explorer, protocol=chosen, beside=beside)
            shown_rows = open_explorer.run(cells)
            assert len(shown_rows) == len(explorer.EPSILONS)
            for column, protocol in ((1, chosen), (3, beside)):
                codes = explorer.codes_of(protocol)
                code = paper if paper in codes else codes[0]
                curve = TABLE["curves"][CURVES.index((protocol, code, 1000, 0.6))]
                told = [float(row[column].split()[0]) for row in shown_rows]
                expected = [off * explorer.OFF_UNIT for off in curve["off"]]
                assert told == pytest.approx(expected, rel=0.006)

    @pytest.mark.parametrize("width", [320, 375, 1280])
    def test_nothing_of_the_picture_is_cut_off(self, open_explorer, width):
        """Whatever is chosen: the longest names, one above the other on a phone."""
        open_explorer.resize(width, 800)
        for chosen, beside in permutations(explorer.PROTOCOLS, 2):
            set_controls(open_explorer, protocol=chosen, beside=beside)
            assert open_explorer.run(CUT_OFF) == []
            assert open_explorer.run(OVERLAPPING) == []

    def test_curves_differ_in_more_than_colour(self, open_explorer):
        shape = (
            "[...document.querySelectorAll('#explorer-picture .{0} path.{1}')]"
            ".map((p) => p.getAttribute('d').replace(/^M[^a-z]*/, ''))[0]"
        )
        chosen = open_explorer.run(shape.format("chosen", "filled"))
        other = open_explorer.run(shape.format("other", "hollow"))
        assert chosen != other
        style = "getComputedStyle(document.querySelector('#explorer-picture .{} polyline'))"
        assert open_explorer.run(f"{style.format('chosen')}.strokeDasharray") == "none"
        assert open_explorer.run(f"{style.format('other')}.strokeDasharray") != "none"


def contrast(one, other):
    """The ratio of WCAG 2 between two colours such as "rgb(1, 2, 3)"."""
    light = []
    for colour in (one, other):
        parts = np.array([int(x) for x in re.findall(r"\d+", colour)[:3]]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        light.append(float(linear @ [0.2126, 0.7152, 0.0722]))
    return (max(light) + 0.05) / (min(light) + 0.05)
