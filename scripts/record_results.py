"""Record every experiment at paper size, or the named ones.  python scripts/record_results.py [NAME ...]"""

import sys

from ranklib.experiments import EXPERIMENTS
from ranklib.runs import record

if __name__ == "__main__":
    names = sys.argv[1:] or list(EXPERIMENTS)
    if unknown := [n for n in names if n not in EXPERIMENTS]:
        sys.exit(f"expected names among {list(EXPERIMENTS)}, got {unknown}")
    for path in record(EXPERIMENTS[n] for n in names):
        print("wrote", path.name)
