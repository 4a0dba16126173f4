"""Execute chapters in place, so that a second run changes nothing: all, or those named as arguments."""

import hashlib
import os
import re
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
WIDGET = "application/vnd.jupyter.widget-view+json"
# Chapters are stored and compared at quick size, on one thread, with a fixed hash seed and clock.
FIXED = {"RANKLIB_SIZE": "quick", "PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": "0", "OMP_NUM_THREADS": "1"}


def identifiers(nb: nbformat.NotebookNode) -> list[str]:
    """An identifier of each cell, from its text: a cell that was edited later has another one."""
    seen, found = Counter(), []
    for cell in nb.cells:
        digest = hashlib.sha1(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:8]
        seen[digest] += 1
        found.append(digest if seen[digest] == 1 else f"{digest}-{seen[digest]}")
    return found


def normalise(nb: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Drop what differs from run to run: widget state, timing, addresses, random ids, kernel names."""
    nb.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    for cell, identifier in zip(nb.cells, identifiers(nb), strict=True):
        cell.id = identifier
        cell.metadata.pop("execution", None)
        whole = []
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET, None)  # the HTML view stays; a live kernel makes a new widget
            if whole and output.get("name", 0) == whole[-1].get("name", 1):
                whole[-1].text += output.text  # how a stream is cut into pieces depends on timing
            else:
                whole.append(output)
        if cell.cell_type == "code":
            cell.outputs = whole
    text = re.sub(r"\bat 0x[0-9a-f]{6,}", "at 0x0", nbformat.writes(nb))
    return nbformat.reads(text, as_version=4)


def run(path: Path) -> None:
    nb = nbformat.read(path, as_version=4)
    nb.metadata["kernelspec"] = KERNEL
    nb.metadata.pop("widgets", None)
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(nb, timeout=300, kernel_name="python3", record_timing=False, resources=resources).execute()
    nbformat.write(normalise(nb), path)
    print("ran", path.relative_to(ROOT), flush=True)


if __name__ == "__main__":
    os.environ |= FIXED
    names = sys.argv[1:] or sorted(p.stem for p in ROOT.glob("chapters/*.ipynb"))
    paths = [ROOT / "chapters" / f"{Path(n).stem}.ipynb" for n in names]
    if missing := [p.name for p in paths if not p.exists()]:
        there = sorted(p.stem for p in ROOT.glob("chapters/*.ipynb"))
        sys.exit(f"expected names of chapters, got {missing}; there are {there}")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, paths))
