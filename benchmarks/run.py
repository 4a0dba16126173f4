"""All benchmarks, one table, and its record: what ``make bench`` does.

Usage: python benchmarks/run.py

Writes results/benchmarks.json, which the page *How fast, against what* shows. Exits with 1, and writes all the same,
if a row is outside its limit or its two sides differ.
"""

import json
import os
import platform
import sys
import time
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import bench_paths
import bench_propagation
import bench_residual
import bench_trace
import bench_training
from pairs import show

MODULES = (bench_residual, bench_propagation, bench_paths, bench_trace, bench_training)
RECORD = Path(__file__).resolve().parents[1] / "results" / "benchmarks.json"


def processor() -> str:
    """The name that the system gives its processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def main() -> int:
    start = time.perf_counter()
    rows = [found for module in MODULES for found in module.rows()]
    code = show(rows)
    origin = import_module("ranklib._provenance").provenance([0], time.perf_counter() - start)
    origin |= {
        "processor": processor(),
        "cores": os.cpu_count(),
        "date": datetime.now(UTC).date().isoformat(),
    }
    origin |= {"threads": os.environ.get("OMP_NUM_THREADS", "not set")}
    plain = [found._asdict() | {"holds": found.holds} for found in rows]
    record = {"name": "benchmarks", "rows": plain, "provenance": origin}
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
