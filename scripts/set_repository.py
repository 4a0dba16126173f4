"""Write the book's public address, the one argument, where it is needed.

The address stands in _config.yml. The setup cell of every chapter repeats it, because Colab opens one chapter
alone.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ADDRESS = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+")


def current() -> str:
    return ADDRESS.search((ROOT / "_config.yml").read_text())[0]


def places() -> list[Path]:
    return [ROOT / "_config.yml", *sorted(ROOT.glob("chapters/*.ipynb"))]


if __name__ == "__main__":
    new = sys.argv[1].rstrip("/").removesuffix(".git") if len(sys.argv) == 2 else ""
    if not ADDRESS.fullmatch(new):
        sys.exit(
            f"expected an address like https://github.com/name/book, got {new!r}: make repository URL=..."
        )
    old = current()
    for path in places():
        path.write_text(re.sub(re.escape(old) + r"(?![\w.-])", new, path.read_text()))
    print(f"{old} -> {new} in {len(places())} files")
