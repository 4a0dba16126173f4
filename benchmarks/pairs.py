"""Two sides measured in alternating pairs, the row of a table that comes of it, and the table.

Each pair gives one ratio of processor times, so a slow spell of the machine hits both sides, and other programs
hardly count; the order of the two changes from pair to pair. The ratio of a row is the median of its pairs.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

from tqdm import tqdm


class Row(NamedTuple):
    """What was measured against which peer: ``ratio`` is ours over the peer's, or the other way round for a speed-up.

    ``bound`` is "at most" or "at least", ``agree`` whether both sides gave the same answer, seconds are medians.
    """

    claim: str
    peer: str
    ratio: float
    bound: str
    limit: float
    pairs: int
    seconds: float
    peer_seconds: float
    agree: bool

    @property
    def holds(self) -> bool:
        """The answer agrees and the ratio is within its limit."""
        within = self.ratio <= self.limit if self.bound == "at most" else self.ratio >= self.limit
        return self.agree and within


def alternate(ours: Callable, peer: Callable, pairs: int, label: str) -> tuple[list[float], list[float]]:
    """Processor seconds of both sides, pair by pair; call each once before to warm it up."""
    sides, taken = (ours, peer), ([], [])
    for number in tqdm(range(pairs), desc=label):
        for side in (0, 1) if number % 2 else (1, 0):
            start = time.process_time()
            sides[side]()
            taken[side].append(time.process_time() - start)
    return taken


def row(
    claim: str, peer: str, taken: tuple[list[float], list[float]], bound: str, limit: float, agree: bool
) -> Row:
    """``at most``: our time over the peer's. ``at least``: the peer's over ours."""
    ratios = [a / b if bound == "at most" else b / a for a, b in zip(*taken, strict=True)]
    return Row(
        claim, peer, median(ratios), bound, limit, len(ratios), median(taken[0]), median(taken[1]), agree
    )


def show(rows: list[Row]) -> int:
    """Print the rows; 1 if one does not hold, else 0."""
    for found in rows:
        verdict = "ok" if found.holds else ("TOO SLOW" if found.agree else "THE TWO SIDES DIFFER")
        print(f"{found.claim}, against {found.peer}:")
        print(
            f"  ratio {found.ratio:.3g} ({found.bound} {found.limit:g}), {found.pairs} pairs, "
            f"{1e3 * found.seconds:.3g} ms against {1e3 * found.peer_seconds:.3g} ms: {verdict}"
        )
    return 0 if all(found.holds for found in rows) else 1
