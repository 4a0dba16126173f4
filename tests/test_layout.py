"""Every module has its test file and, where it computes, its planted fault, in the place where one looks for it."""

import ast
from pathlib import Path

import pytest

from scripts.plant_faults import FAULTS, spoil

ROOT = Path(__file__).resolve().parents[1]
# Derivations are tested by name, exercises by slug: one file for all of them.
TESTED_AS_A_TABLE = ("proofs", "exercises")
COMPUTING = ("model", "paper", "theory", "exact", "measures")


def modules(*rooms: str) -> list[str]:
    """``room/name`` of each module of the library that defines something of its own."""
    found = []
    for path in sorted(ROOT.glob("ranklib/**/*.py")):
        name = path.relative_to(ROOT / "ranklib").with_suffix("").as_posix()
        body = ast.parse(path.read_text()).body
        if path.stem != "__init__" and any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in body):
            found.append(name)
    return [name for name in found if not rooms or name.split("/")[0] in rooms]


def file_for(module: str) -> str:
    room, _, name = module.rpartition("/")
    return "/".join(filter(None, ("tests", room, f"test_{name.strip('_')}.py")))


def test_every_module_has_its_test_file():
    wanted = {file_for(name): name for name in modules() if name.split("/")[0] not in TESTED_AS_A_TABLE}
    missing = [f"{file} for ranklib/{name}.py" for file, name in wanted.items() if not (ROOT / file).exists()]
    assert not missing, (
        "one test file a module: write these, or move the tests of the module there:\n" + "\n".join(missing)
    )


def test_every_module_that_computes_has_a_planted_fault():
    without = set(modules(*COMPUTING)) - {fault.module for fault in FAULTS}
    assert not without, (
        f"add a fault of {sorted(without)} to scripts/plant_faults.py, and see make check catch it"
    )
    assert len(FAULTS) >= 24 and len({fault.module for fault in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.module)
def test_a_planted_fault_finds_its_line_and_leaves_valid_python(fault, tmp_path):
    copy = tmp_path / "ranklib" / f"{fault.module}.py"
    copy.parent.mkdir(parents=True)
    copy.write_text((ROOT / "ranklib" / f"{fault.module}.py").read_text())
    spoil(fault, tmp_path)
    ast.parse(copy.read_text())
    with pytest.raises(ValueError, match="expected the text .* once, got it .* choose another line"):
        spoil(fault._replace(old="no such text"), tmp_path)
