"""Verdicts kept between runs: the key holds the source of engine and topic, and the versions that decide."""

import hashlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path

from .decide import Verdict

ENGINE = Path(__file__).parent


def folder() -> Path:
    """Where verdicts lie: ``$RANKLIB_CACHE``, else ``~/.cache/ranklib``. Nothing there is needed."""
    return Path(os.environ.get("RANKLIB_CACHE") or Path.home() / ".cache" / "ranklib")


@cache
def _versions() -> str:
    return ", ".join(f"{name} {version(name)}" for name in ("sympy", "python-flint", "numpy"))


@cache
def key_of(module: str) -> str:
    """A hash of the topic's source, of the whole engine and of the versions."""
    topic = Path(sys.modules[module].__file__)
    digest = hashlib.sha256(_versions().encode())
    for path in (topic, *sorted(ENGINE.glob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def verdicts(name: str, module: str, verify: Callable[[], tuple[Verdict, ...]]) -> tuple[Verdict, ...]:
    """The verdicts of a derivation, from the cache or from ``verify``; only a full success is kept."""
    path = folder() / f"{name}-{key_of(module)[:24]}.json"
    try:
        return tuple(Verdict(**row) for row in json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        found = verify()
    if all(verdict.ok for verdict in found):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(f".{os.getpid()}")
            draft.write_text(json.dumps([asdict(verdict) for verdict in found]))
            draft.replace(path)
        except OSError:  # a folder that cannot be written only costs time
            pass
    return found
