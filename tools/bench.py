"""Speed on this machine, one thread, all measured in one run: `make bench`.

The yardstick is maximum-likelihood decoding as a float32 matrix product, in chunks of 512 frames.
The two take turns and the best round of each counts, because machines are shared.
"""

from __future__ import annotations

import resource
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from ldpcash import (
    Cash,
    Point,
    PolarCode,
    Prot,
    Protocol,
    ReportSum,
    SCLDecoder,
    sweep,
)
from ldpcash.base.arrays import Bits, Counts, Reals
from ldpcash.beyond.bodies import body
from ldpcash.beyond.compare import contenders
from ldpcash.beyond.histograms import PEERS, PEM
from ldpcash.codec.crc import with_checks
from ldpcash.codec.hadamard import MAX_SYMBOL
from ldpcash.histogram.collector import Collector
from ldpcash.histogram.plan import Plan
from ldpcash.histogram.population import collect, draw_collector

Task = Callable[[], Any]
Name = TypeVar("Name")

ROUNDS = 15
FRAMES = 32_768

# Name, code, noise, and the ratio to ML that AFF3CT 3.0.2, the fastest C++ decoder, reached.
CODES = [
    ("(64, 8) pw", PolarCode.construct(64, 8), 1.6, 0.15),
    ("(256, 8) pw", PolarCode.construct(256, 8), 3.2, 0.42),
    (
        "(256, 8) biorthogonal",
        PolarCode(256, [191, 223, 239, 247, 251, 253, 254, 255]),
        3.2,
        0.38,
    ),
    ("(1024, 512) pw", PolarCode.construct(1024, 512), 0.7, None),
]


def main() -> None:
    decoders()
    long_items()
    growth()
    protocols()
    clients()
    stream()
    histograms()
    histogram_growth()
    sweeps()


def decoders() -> None:
    print("Frames a second; lists of 8; float32 LLRs; one thread; best of", ROUNDS, "rounds")
    print("C++ / ML is a constant: what AFF3CT 3.0.2 reached on another machine")
    print(
        f"{'code':<22} {'SCL':>9} {'float64':>9} {'ML':>9} {'SCL / ML':>8} {'C++ / ML':>8}", end=" "
    )
    print(f"{'encode':>9} {'peak MiB':>8}")
    rng = np.random.default_rng(1)
    for name, code, sigma, reference in CODES:
        frames = FRAMES if reference else 512
        items = rng.integers(0, 2, (frames, code.k), dtype=np.uint8)
        llr = 1 - 2.0 * code.encode(items) + sigma * rng.standard_normal((frames, code.n))
        single = llr.astype(np.float32)
        decoder = SCLDecoder(code)
        tasks: dict[str, Task] = {
            "scl": partial(decoder.decode, single),
            "double": partial(decoder.decode, llr),
            "encode": partial(code.encode, items),
        }
        if reference:
            signs = (1 - 2.0 * code.codebook().T).astype(np.float32)
            tasks["ml"] = partial(matrix_product_ml, single, signs)
        speed = {
            task: frames / t for task, t in best_times(tasks, ROUNDS if reference else 3).items()
        }
        ratio = (
            f"{speed['scl'] / speed['ml']:8.2f} {reference:8.2f}"
            if reference
            else f"{'-':>8} {'-':>8}"
        )
        ml = f"{speed['ml']:9,.0f}" if reference else f"{'-':>9}"
        print(f"{name:<22} {speed['scl']:9,.0f} {speed['double']:9,.0f} {ml} {ratio}", end=" ")
        print(f"{speed['encode']:9,.0f} {peak_memory(tasks['scl']):8.1f}")


def long_items(sizes: Sequence[int] = (8, 12, 16, 24, 40, 64, 128), frames: int = 64) -> None:
    """`Blank` on items of any length, as notebook 16 has it: a report, and a frame decoded by
    symbols, and bit after bit, in noise that both meet."""
    print()
    print("Blank at epsilon = 2, 1.2 times the least signal-to-noise ratio; milliseconds a frame")
    print(
        f"{'bits':>5} {'n':>6} {'list':>5} {'a mean':>7} {'by symbols':>11} {'errors':>7}"
        f" {'by bits':>8} errors"
    )
    rng = np.random.default_rng(1)
    for k in sizes:
        point = Point(epsilon=2.0, frequency=0.01, clients=10**6, **contenders(k)["Blank"])
        blank = point.build()
        code, decoder = blank.code, blank.decoder
        items = rng.integers(0, 2, (frames, k), dtype=np.uint8)
        snr = 1.2 * (2 * np.log(2) * k) ** 0.5
        llr = -(snr * code.signals(items) + rng.standard_normal((frames, code.n)))
        tasks: dict[str, Task] = {
            "mean": partial(blank.mean_reports, items, 0.01, 10**6, rng),
            "symbols": partial(decoder.decode, llr),
        }
        if k > MAX_SYMBOL:  # else there is one symbol, and nothing to compare
            tasks["bits"] = partial(SCLDecoder(code, 32).decode, llr)
        ms = {name: 1e3 * once / frames for name, once in best_times(tasks, 3).items()}
        wrong = {
            name: int((task() != items).any(axis=1).sum())
            for name, task in tasks.items()
            if name != "mean"
        }
        bits = f"{ms['bits']:8.2f} {wrong['bits']:6d}" if "bits" in ms else f"{'-':>8} {'-':>6}"
        print(
            f"{k:5d} {code.n:6d} {point.list_size:5d} {ms['mean']:7.2f} {ms['symbols']:11.3f}"
            f" {wrong['symbols']:7d} {bits} of {frames}"
        )


def growth(
    lengths: Sequence[int] = (256, 512, 1024, 2048),
    lists: Sequence[int] = (1, 2, 4, 8, 16, 32),
    frames: int = 256,
) -> None:
    """How decoding grows with length and list: microseconds a frame, and the slopes."""
    print()
    print("Decoding 64 bits, Gaussian approximation with an 11-bit CRC; microseconds a frame")
    print(f"{'list':>6}", *(f"n = {n:<6}" for n in lengths), "slope in n")
    rng = np.random.default_rng(1)
    table = {}
    for n in lengths:
        code = with_checks(PolarCode.construct(n, 75, "ga", n**0.5 / 12), 11)
        llr = -rng.standard_normal((frames, n)).astype(np.float32)
        decoders = {L: SCLDecoder(code, L) for L in lists}
        tasks: dict[int, Task] = {
            L: partial(decoder.decode, llr) for L, decoder in decoders.items()
        }
        table[n] = {L: 1e6 * t / frames for L, t in best_times(tasks, 5).items()}
    for L in lists:
        times = [table[n][L] for n in lengths]
        print(f"{L:6d}", *(f"{t:10.0f}" for t in times), f"{slope(lengths, times):10.2f}")
    slopes = [slope(lists, list(table[n].values())) for n in lengths]
    print("slope in the list size:", *(f"{steep:.2f}" for steep in slopes))


def protocols(
    trials: int = 4096, clients: int = 1000, frequency: float = 0.6, epsilon: float = 2.0
) -> None:
    """Drawing a mean against simulating its clients; then draw, decode and count, end to end."""
    print()
    print(f"Means of {clients} clients, (64, 8) pw, epsilon {epsilon}, f {frequency}; microseconds")
    print("All from k-ary response on have the Hadamard code, decoded by one transform")
    print(f"{'':<16} {'clients':>9} {'law':>9} {'ratio':>8}", end=" ")
    print(f"{'decode':>9} {'end to end':>10} {'ratio':>8}")
    rng = np.random.Generator(np.random.SFC64(1))
    items = rng.integers(0, 2, (8, trials), dtype=np.uint8).T
    same, holds = np.tile(items[0], (clients, 1)), np.arange(clients) < frequency * clients

    def one_by_one(protocol: Protocol) -> Reals:
        return protocol.reports(same, holds, rng).mean(axis=0)

    def end_to_end(protocol: Protocol) -> int:
        means = protocol.mean_reports(items, frequency, clients, rng)
        return int((protocol.estimate(means).bits != items).any(axis=1).sum())

    settings = {**contenders(), "Blank, (64, 8)": {"protocol": "Blank"}}
    for name, setting in settings.items():
        point = Point(epsilon=epsilon, frequency=frequency, clients=clients, **setting)
        protocol = point.build()
        y = np.ascontiguousarray(protocol.mean_reports(items, frequency, clients, rng))
        times = best_times(
            {
                "clients": partial(one_by_one, protocol),
                "law": partial(protocol.mean_reports, items, frequency, clients, rng),
                "decode": partial(protocol.decoder.decode, y),
                "all": partial(end_to_end, protocol),
            },
            10 * ROUNDS,
        )
        one = {task: 1e6 * t / (1 if task == "clients" else trials) for task, t in times.items()}
        print(
            f"{name:<16} {one['clients']:9.0f} {one['law']:9.2f} {one['clients'] / one['law']:8.0f}"
            f" {one['decode']:9.2f} {one['all']:10.2f} {one['decode'] / one['all']:8.2f}"
        )


def clients(epsilon: float = 1.0, many: int = 1000) -> None:
    """What a report costs: on a client, with the operating system's randomness, and in numbers."""
    print()
    print(f"Microseconds a report at epsilon {epsilon}: one client, {many} at once, and the latter")
    print("beside as many of NumPy's normal numbers; and milliseconds for the first report of all")
    print(f"{'':<16} {'first':>9} {'one':>9} {'many':>9} {'normals':>9} {'ratio':>8}")
    rng = np.random.Generator(np.random.SFC64(1))
    items, holds = np.zeros((many, 8), dtype=np.uint8), np.ones(many, dtype=bool)
    for n in (64, 256):
        code = PolarCode.construct(n, 8)
        for protocol in (Cash(code, epsilon), Prot(code, epsilon)):
            start = time.perf_counter()
            protocol.reports(items[:1], holds[:1])
            first = time.perf_counter() - start
            times = best_times(
                {
                    "one": partial(protocol.reports, items[:1], holds[:1]),
                    "many": partial(protocol.reports, items, holds, rng),
                    "normals": partial(rng.standard_normal, (many, n)),
                },
                10 * ROUNDS,
            )
            one, several, normals = (1e6 * seconds for seconds in times.values())
            print(
                f"{type(protocol).__name__ + f', n = {n}':<16} {1e3 * first:9.2f} {one:9.1f}"
                f" {several / many:9.3f} {normals / many:9.3f} {several / normals:8.2f}"
            )


def sweeps(epsilons: Sequence[float] = (3.0, 3.2, 3.4, 3.6), trials: int = 8_000_000) -> None:
    """The same sweep with one worker and with two, each from an empty store."""
    points = [
        Point(protocol=protocol, epsilon=epsilon, frequency=0.6, clients=1000)
        for protocol in ("Cash", "Prot")
        for epsilon in epsilons
    ]
    seconds = {}
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as store:
            start = time.perf_counter()
            sweep(points, 1, min_errors=trials, max_trials=trials, workers=workers, store=store)
            seconds[workers] = time.perf_counter() - start
    print()
    print(f"A sweep of {len(points)} points with {trials:,} trials each:", end=" ")
    print(f"one worker {seconds[1]:.0f} s, two {seconds[2]:.0f} s,", end=" ")
    print(f"{seconds[1] / seconds[2]:.2f} times as fast")


def stream(clients: int = 10_000_000, at_once: int = 10_000) -> None:
    """Reports of many clients, added up as they come."""
    cash = Cash(PolarCode.construct(64, 8), 1.0)
    rng = np.random.Generator(np.random.SFC64(1))
    items, holds = np.zeros((at_once, 8), dtype=np.uint8), np.ones(at_once, dtype=bool)
    total = ReportSum(64)
    start = time.perf_counter()
    for _ in range(clients // at_once):
        total.add(cash.reports(items, holds, rng))
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print()
    print(f"{total.count:,} reports made and added up in {seconds:.0f} s;", end=" ")
    print(f"peak of the whole process: {peak:.0f} MiB")


def census_clients(clients: int, rng: np.random.Generator) -> tuple[Bits, Counts]:
    """Which name each client has; -1 for one that the census does not list."""
    names = body("census", 40)
    who = rng.choice(len(names.share) + 1, clients, p=[*names.share, names.empty])
    return names.bits, np.where(who == len(names.bits), -1, who)


def fresh_collector(plan: Plan, issued: int) -> Collector:
    collector = Collector(plan, bytes(16))
    collector.issue(issued)
    return collector


def take_in(plan: Plan, tickets: Any, sent: Any) -> None:
    fresh_collector(plan, len(tickets)).add(tickets, sent)


def take_in_bytes(plan: Plan, issued: int, stream: bytes) -> None:
    fresh_collector(plan, issued).receive_stream([stream])


def histograms(clients: int = 10**6, some: int = 200_000) -> None:
    """What a client and the server spend on census names, for each epsilon, and a peer."""
    print()
    print(f"Histograms of names, 40 bits, plans for N = {clients:,}; best of 3 rounds")
    print(f"{'':<20} {'bytes':>8} {'client':>9} {'add':>9} {'receive':>9} {'search':>8}")
    print(f"{'':<20} {'a client':>8} {'us':>9} {'us/report':>9} {'us/report':>9} {'s':>8}")
    rng = np.random.default_rng(1)
    bits, who = census_clients(some, rng)
    for epsilon in (1.0, 2.0, 4.0, 8.0):
        plan = Plan.choose(clients, 40, epsilon)
        tickets = Collector(plan, bytes(16)).issue(some)
        sent = plan.reports(bits[who], who >= 0, tickets, rng)
        stream = plan.to_bytes(tickets, sent)
        names = body("census", 40)
        *counts, empty = rng.multinomial(clients, [*names.share, names.empty]).tolist()
        full = draw_collector(plan, names.bits, counts, rng, empty)

        times = best_times(
            {
                "issue": partial(fresh_collector, plan, some),
                "client": partial(plan.reports, bits[who], who >= 0, tickets, rng),
                "add": partial(take_in, plan, tickets, sent),
                "receive": partial(take_in_bytes, plan, some, stream),
                "search": full.histogram,
            },
            3,
        )
        print(f"{f'symbols, epsilon {epsilon:g}':<20} {plan.report_size:8,}", end="")
        for name in ("client", "add", "receive"):
            less = 0.0 if name == "client" else times["issue"]
            print(f" {1e6 * (times[name] - less) / some:9.3f}", end="")
        print(f" {times['search']:8.2f}")
    kind, options = PEERS[PEM]
    pem, few = kind(40, 2.0, **options), 4000
    start = time.perf_counter()
    reports = pem.reports(bits[who[:few]], who[:few] >= 0, rng)
    made = time.perf_counter()
    pem.search(reports)  # which hashes all reports again at every candidate
    found = time.perf_counter()
    print(
        f"{f'{PEM}, epsilon 2':<20} {pem.report_size:8,} {1e6 * (made - start) / few:9.3f}", end=""
    )
    print(f" {'':>9} {1e6 * (found - made) / few:9.3f} {'':>8}")


def histogram_growth(epsilon: float = 2.0) -> None:
    """Seconds and MiB as N, K and k grow, and the slopes of their logarithms."""
    names = body("census", 40)
    share = [*names.share, names.empty]
    rng = np.random.default_rng(1)

    def streamed(clients: int, count: int = 256) -> Task:
        plan = Plan.choose(10**6, 40, epsilon, count=count)
        bits, who = census_clients(clients, rng)
        return lambda: collect(plan, bits, who, seed=1)

    def drawn(clients: int) -> Task:
        *counts, empty = rng.multinomial(clients, share).tolist()
        plan = Plan.choose(10**6, 40, epsilon)
        return lambda: draw_collector(plan, names.bits, counts, rng, empty)

    def searched(count: int = 256, k: int = 40) -> Task:
        plan = Plan.choose(10**6, k, epsilon, count=count)
        item = rng.integers(0, 2, (1, k), dtype=np.uint8)
        collector = draw_collector(plan, item, [50_000], rng, 950_000)
        return collector.histogram

    print()
    print("What grows: seconds, MiB on top of the clients' items, and slopes of their logarithms")
    sizes, widths, lengths = [10**5, 10**6, 10**7], [64, 256, 1024], [16, 32, 64, 128]
    fig, axes = plt.subplots(1, 5, figsize=(15, 3), layout="constrained")
    tasks: list[tuple[str, Callable[[int], Task], list[int]]] = [
        ("clients simulated one by one, N", streamed, sizes),
        ("their sums from the exact law, N", drawn, sizes),
        ("10^5 clients, K", lambda count: streamed(10**5, count), widths),
        ("search, K", searched, widths),
        ("search, k", lambda k: searched(k=k), lengths),
    ]
    for ax, (name, task, grid) in zip(axes, tasks, strict=True):
        seconds, memory = [], []
        for value in grid:
            ready = task(value)
            start = time.perf_counter()
            ready()
            seconds.append(time.perf_counter() - start)
            memory.append(peak_memory(ready))
        points = zip(grid, seconds, memory, strict=True)
        slopes = f"slopes: time {slope(grid, seconds):.2f}, memory {slope(grid, memory):.2f}"
        print(f"{name}: " + ", ".join(f"{v:,}: {s:.2f} s {m:.0f} MiB" for v, s, m in points))
        print(f"    {slopes}")
        ax.loglog(grid, seconds, "o-", label="seconds")
        ax.loglog(grid, memory, "s--", label="MiB")
        ax.set_xticks(grid, [f"{value:,}" for value in grid])
        ax.minorticks_off()
        ax.set_title(f"{name}\n{slopes}", fontsize=7)
    axes[0].legend()
    path = Path(__file__).parents[1] / "build" / "histogram_growth.png"  # a machine's, not ours
    path.parent.mkdir(exist_ok=True)
    fig.savefig(path, dpi=150)
    print("drawn in", path.relative_to(path.parents[1]))


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Of a line through the logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def matrix_product_ml(llr: NDArray[np.float32], signs: NDArray[np.float32]) -> Counts:
    """The item with the largest correlation, frame by frame: no tie rule, no bits, no checks."""
    return np.concatenate(
        [(llr[i : i + 512] @ signs).argmax(axis=1) for i in range(0, len(llr), 512)]
    )


def best_times(tasks: Mapping[Name, Task], rounds: int) -> dict[Name, float]:
    """Seconds of the best round of each task, the tasks taking turns."""
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(rounds):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def peak_memory(task: Task) -> float:
    """MiB that a task takes on top of its input, its output included."""
    tracemalloc.start()
    task()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


if __name__ == "__main__":
    main()
