"""Write the book's public address, the one argument, where it is needed.

The address stands in _config.yml. The setup cell and the Colab badge of every chapter repeat it, because Colab opens one chapter
alone.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ADDRESS = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+")


def current() -> str:
    return ADDRESS.search((ROOT / "_config.yml").read_text())[0]


def colab(address: str) -> str:
    """The beginning of a chapter's address in Colab, as the badge on its top has it."""
    return "https://colab.research.google.com/github" + address.removeprefix("https://github.com") + "/"


def places() -> list[Path]:
    return [ROOT / "_config.yml", *sorted(ROOT.glob("chapters/*.ipynb"))]


if __name__ == "__main__":
    new = sys.argv[1].rstrip("/").removesuffix(".git") if len(sys.argv) == 2 else ""
    if not ADDRESS.fullmatch(new):
        sys.exit(
            f"expected an address like https://github.com/name/book, got {new!r}: make repository URL=..."
        )
    old = current()
    changed = 0
    for path in places():
        before = path.read_text()
        after = re.sub(re.escape(old) + r"(?![\w.-])", new, before)
        after = after.replace(colab(old), colab(new))
        path.write_text(after)
        changed += after != before
    print(f"{old} -> {new} in {changed} files")
