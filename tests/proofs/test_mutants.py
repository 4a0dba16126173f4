"""One sign, one constant and one relation are changed in every derivation: in the content and in the display.

The display is printed from the content, so a change of the content is a change of the display; and a stored page
whose display was changed by hand is not what the derivation prints.
"""

import dataclasses
import re
from pathlib import Path

import nbformat
import pytest
import sympy as sp

from ranklib.proofs import DERIVATIONS, derivation

ROOT = Path(__file__).resolve().parents[2]
ONLY_FIRST = (sp.Sum, sp.Limit, sp.Derivative, sp.Integral, sp.Subs)
TURNED = {"=": "<", "<=": ">=", "<": ">", "!=": "="}


def places(expr, wanted, path=()):
    """Paths to the parts of an expression that are wanted, the indices of sums and limits left out."""
    if wanted(expr):
        yield path
    if isinstance(expr, sp.MatrixSymbol | sp.Indexed | sp.Identity | sp.OneMatrix | sp.ZeroMatrix):
        return
    args = list(expr) if isinstance(expr, sp.MatrixBase) else expr.args
    for number, arg in enumerate(args[:1] if isinstance(expr, ONLY_FIRST) else args):
        if isinstance(arg, sp.Expr | sp.MatrixBase):
            yield from places(arg, wanted, (*path, number))


def changed(expr, path, change):
    if not path:
        return change(expr)
    if isinstance(expr, sp.MatrixBase):
        entries = list(expr)
        entries[path[0]] = changed(entries[path[0]], path[1:], change)
        return sp.ImmutableMatrix(*expr.shape, entries)
    args = list(expr.args)
    args[path[0]] = changed(args[path[0]], path[1:], change)
    return expr.func(*args)


def is_sum(expr):
    return isinstance(expr, sp.Add | sp.MatAdd)


def flipped(expr):
    """The last summand with the other sign."""
    return expr.func(*expr.args[:-1], -expr.args[-1])


def is_constant(expr):
    return isinstance(expr, sp.Rational) and expr not in (0, -1)


CHANGES = {"sign": (is_sum, flipped), "constant": (is_constant, lambda number: number + 1)}


def mutants(step, kind):
    """The step with one thing changed, in every place where that can be done."""
    if kind == "relation":
        yield dataclasses.replace(step, relation=TURNED[step.relation], kind="mutant")
        return
    wanted, change = CHANGES[kind]
    for side in ("rhs", "lhs"):
        expr = getattr(step, side)
        found = list(places(expr, wanted))
        for path in found:
            try:
                new = changed(expr, path, change)
            except (TypeError, ValueError, AttributeError, NotImplementedError):  # not an expression any more
                continue
            if new != expr:
                yield dataclasses.replace(step, **{side: new})
        if not found and expr != 0 and not isinstance(expr, sp.ZeroMatrix):  # nothing inside: the whole side
            yield dataclasses.replace(step, **{side: -expr if kind == "sign" else 2 * expr})


def caught(step):
    try:
        return not step.verify().ok
    except (TypeError, ValueError, AttributeError, ZeroDivisionError):
        return False  # it does not even compute: no credit


@pytest.mark.parametrize("kind", ["sign", "constant", "relation"])
@pytest.mark.parametrize("name", DERIVATIONS)
def test_a_change_of_the_content_is_caught_and_shown(name, kind):
    tried = 0
    for step in derivation(name).steps:
        if step.kind == "definition":
            continue
        for mutant in mutants(step, kind):
            tried += 1
            assert mutant.display() != step.display(), (step.name, "the change does not show")
            if caught(mutant):
                return
            assert tried < 40, "most changes pass"
    pytest.fail(f"none of {tried} changes of a {kind} was caught")


@pytest.mark.parametrize("name", ["path_lengths", "total_variation", "slow_decay"])
def test_nearly_every_change_is_caught(name):
    """Not one chosen place: all signs and relations of three derivations. What is left is slack by nature."""
    verdicts = [
        caught(mutant)
        for step in derivation(name).steps
        if step.kind not in ("definition", "search only")
        for kind in ("sign", "relation")
        for mutant in mutants(step, kind)
    ]
    assert len(verdicts) > 15 and sum(verdicts) >= 0.8 * len(verdicts), (sum(verdicts), len(verdicts))


def stored():
    """Name of a derivation -> its stored text, from the page that lists all."""
    page = nbformat.read(ROOT / "chapters/derivations.ipynb", 4)
    (text,) = (
        output["data"]["text/markdown"]
        for cell in page.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    )
    folds = re.findall(r"<details>.*?</details>\n", text, re.S)
    return {re.search(r"\(<code>(\w+)</code>\)", fold)[1]: fold for fold in folds}


def printed(name):
    built = derivation(name)
    return built.markdown(f"<b>{built.statement}</b> (<code>{name}</code>)")


def display_mutants(text):
    """The stored text with one sign, one constant and one relation of a formula changed by hand."""
    formulas = [match.span(1) for match in re.finditer(r"\$\$\n(.*?)\n\$\$", text, re.S)]
    for pattern, change in (
        (r"(?<![\\\w])[-+] ", lambda found: "+ " if found[0] == "- " else "- "),
        (r"\d+", lambda found: str(int(found[0]) + 1)),
        (r"\\le|\\neq|(?<![:{])=(?!\d)|<", lambda found: ">" if found[0] != ">" else "<"),
    ):
        for start, end in formulas:
            new, count = re.subn(pattern, change, text[start:end], count=1)
            if count:
                yield pattern, text[:start] + new + text[end:]
                break


STORED = stored()


@pytest.mark.parametrize("name", DERIVATIONS)
def test_the_stored_page_shows_what_is_checked_and_a_change_of_it_is_caught(name):
    assert STORED[name] == printed(name), "run chapters/derivations.ipynb again"
    spoiled = dict(display_mutants(STORED[name]))
    assert len(spoiled) >= 2, "no constant, sign or relation in any formula"
    for pattern, text in spoiled.items():
        assert text != printed(name), pattern


def test_the_page_lists_every_derivation():
    assert set(STORED) == set(DERIVATIONS)


def test_chapters_store_what_their_derivations_print():
    for path in sorted(ROOT.glob("chapters/*.ipynb")):
        for cell in nbformat.read(path, 4).cells:
            asked = re.fullmatch(r'rl\.derivation\("(\w+)"\)', cell.source.strip())
            if cell.cell_type == "code" and asked:
                (output,) = cell.outputs
                assert output["data"]["text/markdown"] == derivation(asked[1])._repr_markdown_(), (
                    path.name,
                    asked[1],
                )
