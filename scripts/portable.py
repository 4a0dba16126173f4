"""The numeric tests and all chapters, run as other processors would run them, and with the lowest versions allowed.

    make portable               all ways
    make portable ONLY=avx2     those with avx2 in their name; several words: ONLY="noise lowest"

Prints a table and exits 1 if a way is red. What was green at the same state of the repository is not run again,
so that an interrupted run goes on where it stopped; logs lie in .partial/portable/. `portable.py --floors` prints the
lowest versions that pyproject.toml allows.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / ".partial" / "portable"
LOWEST = ROOT / ".venv-lowest" / "bin" / "python"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SETTINGS = {
    "ATEN_CPU_CAPABILITY": ("default", "avx2"),
    "MKL_ENABLE_INSTRUCTIONS": ("SSE4_2", "AVX2", "AVX512"),
}
# The site needs no second processor, and derivations are sympy's.
NOT_NUMERIC = ("book", "proofs")


def floors() -> list[str]:
    """Each requirement of the package and its extras at the lowest version that it allows."""
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    return [requirement.replace(">=", "==") for group in groups for requirement in group]


def ways() -> dict[str, tuple[dict[str, str], list[str], str]]:
    """Name of a way: environment variables, options of pytest, Python."""
    here, found = sys.executable, {}
    for threads in ("1", "2"):
        for variable, values in SETTINGS.items():
            for value in values:
                environment = {"OMP_NUM_THREADS": threads, variable: value}
                found[f"{variable}={value}, threads: {threads}"] = (environment, [], here)
    one = {"OMP_NUM_THREADS": "1"}
    for seed in (1, 2, 3):
        found[f"rounding noise, seed {seed}"] = (one, [f"--rounding-noise={seed}"], here)
    return found | {"lowest versions": (one, [], str(LOWEST))}


def state() -> str:
    """A hash of what git sees: the commit, the changes, the new files."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    digest = hashlib.sha256(sys.version.encode())
    for name in sorted(set(listed.stdout.split(b"\0")) - {b""}):
        path = ROOT / os.fsdecode(name)
        digest.update(name + (path.read_bytes() if path.is_file() else b""))
    return digest.hexdigest()[:16]


def refused(python: str) -> str:
    """Why a way is not tried here, '' if it is."""
    lowest = re.search(r"\d+\.\d+", PROJECT["requires-python"])[0]
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if python == str(LOWEST) and here != lowest:
        return f"not tried: the floors are for Python {lowest}, this is {here}"
    return ""


def run(name: str, environment: dict[str, str], options: list[str], python: str) -> dict:
    """Run one way to its end; how it ended, in words."""
    rooms = sorted(p for p in (ROOT / "tests").iterdir() if p.is_dir() and not p.name.startswith(("_", ".")))
    places = [str(p.relative_to(ROOT)) for p in rooms if p.name not in NOT_NUMERIC]
    workers = max(1, (os.cpu_count() or 1) // int(environment["OMP_NUM_THREADS"]))
    command = [python, "-m", "pytest", "-q", "-rf", "-n", str(workers), "--dist", "loadfile", "--tb=short"]
    command += ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=300"]
    command += ["--nbval-sanitize-with=tests/nbval_sanitize.cfg", *options, "chapters", *places]
    log = LOGS / (re.sub(r"\W+", "-", name) + ".log")
    began = time.monotonic()
    with log.open("w") as out:
        settings = environment | {"RANKLIB_SIZE": "quick", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | settings, stdout=out, stderr=subprocess.STDOUT
        )
    text = log.read_text(errors="replace")
    summary = re.findall(r"^=*\s*(\d+ (?:passed|failed|error)[^=]*?) in [\d.]+s", text, flags=re.M)
    red = re.findall(r"^(?:FAILED|ERROR) (\S+)", text, flags=re.M)
    return {
        "green": done.returncode == 0,
        "outcome": summary[-1] if summary else f"pytest ended with {done.returncode}, see {log.name}",
        "seconds": round(time.monotonic() - began),
        "red": red,
    }


def main(words: list[str]) -> int:
    chosen = {n: way for n, way in ways().items() if not words or any(w.lower() in n.lower() for w in words)}
    if not chosen:
        sys.exit(f"portable: expected ONLY to be part of a name, got {words}; names are: {'; '.join(ways())}")
    LOGS.mkdir(parents=True, exist_ok=True)
    record, now = LOGS / "outcomes.json", state()
    known = json.loads(record.read_text()) if record.exists() else {}
    known = known if known.get("state") == now else {"state": now}
    red = []
    print("| way | outcome | seconds |\n|---|---|---|", flush=True)
    for name, (environment, options, python) in chosen.items():
        if reason := refused(python):
            print(f"| {name} | {reason} | |", flush=True)
            continue
        if not known.get(name, {}).get("green"):
            known[name] = run(name, environment, options, python)
            record.write_text(json.dumps(known, indent=1))
        found = known[name]
        print(f"| {name} | {found['outcome']} | {found['seconds']} |", flush=True)
        red += [f"{name}: {test}" for test in found["red"] or ([] if found["green"] else [found["outcome"]])]
    print("\n".join(["", *red]) if red else "\nall green")
    return bool(red)


if __name__ == "__main__":
    if sys.argv[1:] == ["--floors"]:
        print("\n".join(floors()))
    else:
        sys.exit(main(sys.argv[1:]))
