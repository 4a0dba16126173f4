"""Every public function with a busy neighbour: as many threads as the machine gives, against one thread.

Usage: python benchmarks/bench_neighbour.py [PART_OF_A_NAME ...]

A process that computes without end keeps one core busy. Two others make the same call in turn, one as the library is
found, one with OMP_NUM_THREADS=1, and every turn gives one ratio of wall times. Exits with 1 if the median ratio of
some function is above 1.5 by more than a quarter of a millisecond (after the suspects were measured again, with three times as many turns), because then
a user whose machine does something else beside pays for threads that small work does not need.
"""

import os
import subprocess
import sys
import time
from importlib import import_module
from statistics import median

from tqdm import tqdm

MOST, NOTICED = 1.5, 2.5e-4  # waking a thread takes some microseconds
TURNS, LEAST_SECONDS, LONGEST = 5, 0.005, 1.0
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# One linear programme of this size takes minutes.
LEFT_OUT = {("paper.residual_size_exact", "large")}


def answer() -> None:
    """Serve ``size name repeats`` lines: print wall and processor seconds of one call."""
    import_module("ranklib")  # before torch, as a chapter does
    torch = import_module("torch")
    from calls import SIZES, computing_calls

    calls = {size: computing_calls(size) for size in SIZES}
    with torch.no_grad():
        for line in sys.stdin:
            size, name, repeats = line.split()
            wall, processor = time.perf_counter(), time.process_time()
            for _ in range(int(repeats)):
                calls[size][name]()
            taken = time.perf_counter() - wall, time.process_time() - processor
            print(*(value / int(repeats) for value in taken), flush=True)


class Side:
    """One process that makes calls."""

    def __init__(self, threads: str | None) -> None:
        environment = {key: value for key, value in os.environ.items() if key not in THREADS}
        environment |= {} if threads is None else dict.fromkeys(THREADS, threads)
        command = [sys.executable, __file__, "--answer"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
        self.process = subprocess.Popen(command, env=environment, **pipes)

    def seconds(self, size: str, name: str, repeats: int) -> tuple[float, float]:
        """Wall and processor seconds of one call."""
        self.process.stdin.write(f"{size} {name} {repeats}\n")
        line = self.process.stdout.readline().split()
        if not line:
            raise RuntimeError(
                f"{name}: expected two times, got the end of the process; see its message above"
            )
        return float(line[0]), float(line[1])


def measure(one: Side, many: Side, size: str, name: str, turns: int) -> list[tuple[float, ...]]:
    """Wall and processor seconds with one thread, then with many, for every turn."""
    first = one.seconds(size, name, 1)[0]
    first = min(first, one.seconds(size, name, 1)[0])
    many.seconds(size, name, 1)
    repeats = max(1, round(LEAST_SECONDS / first)) if first < LEAST_SECONDS else 1
    turns = turns if first < LONGEST / turns else max(3, round(LONGEST / first))
    return [(*one.seconds(size, name, repeats), *many.seconds(size, name, repeats)) for _ in range(turns)]


def ratio(turns: list[tuple[float, ...]], column: int = 0) -> float:
    """Median of many over one; column 0 is wall time, 1 processor time."""
    return median(turn[column + 2] / turn[column] for turn in turns)


def is_slow(turns: list[tuple[float, ...]]) -> bool:
    """More than 1.5 times slower with many threads, and by a time that somebody could notice."""
    return ratio(turns) > MOST and median(turn[2] - turn[0] for turn in turns) > NOTICED


def main(parts: list[str]) -> int:
    from calls import SIZES, computing_calls

    names = [(s, n) for s in SIZES for n in computing_calls(s) if (n, s) not in LEFT_OUT]
    names = [(s, n) for s, n in names if not parts or any(part in n for part in parts)]
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    one, many = Side("1"), Side(None)
    try:
        found = {key: measure(one, many, *key, TURNS) for key in tqdm(names, desc="beside a busy core")}
        for key in tqdm([key for key in names if is_slow(found[key])], desc="suspects again"):
            found[key] = measure(one, many, *key, 3 * TURNS)
    finally:
        for process in (busy, one.process, many.process):
            process.kill()
    print("many threads over one, median of turns: wall time, processor time; wall ms with one thread")
    for size, name in sorted(names, key=lambda key: -ratio(found[key])):
        turns = found[size, name]
        ms = 1e3 * median(turn[0] for turn in turns)
        print(f"{ratio(turns):6.2f} {ratio(turns, 1):6.2f} {ms:9.2f}  {size:5}  {name}")
    slow = [key for key in names if is_slow(found[key])]
    print(f"{len(names)} calls, above {MOST} by more than {1e3 * NOTICED} ms: {len(slow)}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(answer() if sys.argv[1:] == ["--answer"] else main(sys.argv[1:]))
