"""A step of CONTRIBUTING's seven tasks is forgotten in a copy, and what fails says in a sentence what to do."""

import copy
import re
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import NamedTuple

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell
from torch import nn

from hand_loops import unwritten
from ranklib.exercises.answers import exercise
from ranklib.measures.table import MEASURES
from ranklib.tracing.blocks import blocks
from sphinxext.numbers_of_the_book import read_numbers
from tests.book.notebook_rules import (
    CHAPTERS,
    EXERCISE,
    PICTURES,
    ROOT,
    a_badge_stands_on_top,
    captions_stand_below_figures,
    code_of,
    exercises_are_whole,
    figures_are_described_and_asserted,
    kinds,
    read,
    run_as_it_stands,
    run_in_order,
)
from tests.book.test_contributing import TASKS
from tests.book.test_numbers import unlisted
from tests.book.test_sources import misquoted
from tests.exercises.test_exercises import incomplete, unmatched
from tests.exercises.test_transfer import too_few
from tests.measures.oracles import oracle_of
from tests.measures.test_table import untabled
from tests.proofs.test_same_functions import underived, unexpressed

SLUG = "how-the-paper-measures"  # it has a figure, an exercise and text


def chapter():
    return copy.deepcopy(read(ROOT / f"chapters/{SLUG}.ipynb"))


def figure(nb):
    return next(cell for cell in code_of(nb) if PICTURES & kinds(cell))


# ---------------------------------------------------------------- what is forgotten: each returns what the checks say


def code_is_edited_and_not_run():
    nb = chapter()
    code_of(nb)[-1].source += "\nassert 1 + 1 == 2"
    return run_as_it_stands(nb)


def cell_is_added_and_not_run():
    nb = chapter()
    nb.cells.append(new_code_cell("assert 1 + 1 == 2"))
    return run_in_order(nb)


def the_library_quotes_the_old_name():
    """The statement was renamed in the chapter."""
    return misquoted("Source: Theorem (Average centre) in chapter `how-the-paper-measures`.")


def new_constant(lam):
    """Two Lambda."""


def constant_without_expression():
    return unexpressed(["new_constant"])


def constant_without_derivation():
    return underived([new_constant])


def figure_without_alt_text():
    nb = chapter()
    figure(nb).metadata.pop("mystnb")
    return figures_are_described_and_asserted(nb)


def figure_without_assertion():
    nb = chapter()
    cell = figure(nb)
    cell.source = re.sub(r"^( *)assert .*?(?=^\S|\Z)", "", cell.source, flags=re.M | re.S)
    return figures_are_described_and_asserted(nb)


def figure_without_caption():
    nb = chapter()
    nb.cells.insert(nb.cells.index(figure(nb)) + 1, new_markdown_cell("As one sees."))
    return captions_stand_below_figures(nb)


def half_mu(x):
    """Half of mu."""


def module_with(function):
    module = ModuleType("ranklib.measures.tokens")
    function.__module__ = module.__name__
    setattr(module, function.__name__, function)
    return module


def measure_without_line():
    return untabled(module_with(half_mu), MEASURES, ["half_mu"])


def measure_without_offer():
    return untabled(module_with(half_mu), {"half_mu": half_mu}, [])


def measure_without_oracle():
    return raised(lambda: oracle_of("half_mu"))


def architecture_without_blocks():
    """Its layers are no stack: what `ranklib trace` says."""
    return raised(lambda: blocks(nn.Sequential(nn.Linear(3, 3), nn.Tanh())))


def architecture_without_loop():
    return unwritten(["mamba"])


def exercise_without_check():
    return unmatched(["halved"], ["halved"], [], SLUG)


def exercise_without_cell():
    return unmatched(["halved"], [], ["halved"], SLUG)


def exercise_without_text():
    return unmatched([], ["halved"], ["halved"], SLUG)


def exercise_without_answers():
    @exercise(right=[1], malformed="one")
    def halved(answer):
        return None

    return [incomplete(halved)]


def exercise_with_few_slips():
    return [too_few("drop", 1)]


def exercise_without_solution():
    nb = chapter()
    for cell in nb.cells:
        cell.source = cell.source.replace("<summary>Solution", "<summary>Hint")
    assert any(EXERCISE.search(cell.source) for cell in nb.cells)
    return exercises_are_whole(nb)


def chapter_without_line():
    files = re.findall(r"file: chapters/([\w-]+)", (ROOT / "_toc.yml").read_text())
    return unlisted([*(path.stem for path in CHAPTERS), "stub"], files)


def chapter_without_file(folder):
    (folder / "chapters").symlink_to(ROOT / "chapters")
    toc = (ROOT / "_toc.yml").read_text()
    (folder / "_toc.yml").write_text(toc.replace(f"chapters/{SLUG}", "chapters/stub", 1))
    return raised(lambda: read_numbers(folder))


def chapter_without_badge():
    nb = chapter()
    nb.cells.pop(0)
    return a_badge_stands_on_top(nb)


def raised(call: Callable) -> list[str]:
    try:
        call()
    except (AssertionError, ValueError, FileNotFoundError) as error:
        return [str(error)]
    return []


class Step(NamedTuple):
    """A step that is forgotten in a task, and what the sentence names as the remedy."""

    task: str
    forget: Callable[..., Iterable[str]]
    remedy: str


STEPS = [
    Step("a sentence", code_is_edited_and_not_run, "'make run CHAPTER=NAME'"),
    Step("a sentence", cell_is_added_and_not_run, "run 'make run CHAPTER=NAME'"),
    Step("a sentence", the_library_quotes_the_old_name, r"write 'Theorem \(Name\) in chapter `slug`'"),
    Step("a constant", constant_without_expression, "write .* into ranklib/proofs/expressions.py"),
    Step("a constant", constant_without_derivation, "write its derivation in ranklib/proofs/"),
    Step("a figure", figure_without_alt_text, "metadata, mystnb: image: alt:"),
    Step("a figure", figure_without_assertion, "assert in its cell"),
    Step("a figure", figure_without_caption, r"begin the Markdown below it with '\*\*Figure\.\*\*"),
    Step("a measure", measure_without_line, "add it to ranklib/measures/table.py"),
    Step("a measure", measure_without_offer, "add it to its line in ranklib/measures/__init__.py"),
    Step("a measure", measure_without_oracle, "add a function half_mu.* to tests/measures/oracles.py"),
    Step("an architecture", architecture_without_blocks, "pass the part with one stack"),
    Step("an architecture", architecture_without_loop, "write one into LOOPS of tests/hand_loops.py"),
    Step(
        "an exercise", exercise_without_check, "write @exercise.* in ranklib/exercises/how_the_paper_measures"
    ),
    Step("an exercise", exercise_without_cell, r"add one that ends in rl.check\('halved', answer\)"),
    Step("an exercise", exercise_without_text, f"label one .* in chapters/{SLUG}.ipynb"),
    Step("an exercise", exercise_without_answers, r"add them to @exercise\(\.\.\.\) above its check in"),
    Step("an exercise", exercise_with_few_slips, r"add wrong answers to its @exercise\(wrong=\.\.\.\)"),
    Step("an exercise", exercise_without_solution, "add <details> with <summary>Solution</summary>"),
    Step("a chapter", chapter_without_line, "add a line '- file: chapters/stub' to _toc.yml"),
    Step("a chapter", chapter_without_file, "add chapters/stub.ipynb or take the line out"),
    Step("a chapter", chapter_without_badge, "copy the first cell of another chapter"),
]


def test_the_chapter_has_nothing_to_find():
    rules = (run_as_it_stands, run_in_order, figures_are_described_and_asserted, captions_stand_below_figures)
    assert not [
        fault for rule in (*rules, exercises_are_whole, a_badge_stands_on_top) for fault in rule(chapter())
    ]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.forget.__name__)
def test_a_forgotten_step_is_told_with_its_remedy(step, tmp_path):
    found = [*(step.forget(tmp_path) if step.forget is chapter_without_file else step.forget())]
    assert found, "nothing was noticed"
    assert re.search(step.remedy, " ".join(found)), found
    assert not re.search(r"KeyError|At index \d|Traceback", " ".join(found))


def test_each_task_has_a_step_that_can_be_forgotten():
    assert [*dict.fromkeys(step.task for step in STEPS)] == TASKS
