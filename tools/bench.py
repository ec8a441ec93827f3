"""Speed on this machine, one thread, all measured in one run: `make bench`.

The yardstick is maximum-likelihood decoding as a float32 matrix product, in chunks of 512 frames.
The two take turns and the best round of each counts, because machines are shared.
"""

import time
import tracemalloc

import numpy as np

from ldpcash import PolarCode, SCLDecoder

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


def main():
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
        tasks = {
            "scl": lambda decoder=decoder, single=single: decoder.decode(single),
            "double": lambda decoder=decoder, llr=llr: decoder.decode(llr),
            "encode": lambda code=code, items=items: code.encode(items),
        }
        if reference:
            signs = (1 - 2.0 * code.codebook().T).astype(np.float32)
            tasks["ml"] = lambda single=single, signs=signs: matrix_product_ml(single, signs)
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


def matrix_product_ml(llr, signs):
    """The item with the largest correlation, frame by frame: no tie rule, no bits, no checks."""
    return np.concatenate(
        [(llr[i : i + 512] @ signs).argmax(axis=1) for i in range(0, len(llr), 512)]
    )


def best_times(tasks, rounds):
    """Seconds of the best round of each task, the tasks taking turns."""
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(rounds):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def peak_memory(task):
    """MiB that a task takes on top of its input, its output included."""
    tracemalloc.start()
    task()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


if __name__ == "__main__":
    main()
