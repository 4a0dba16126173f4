"""The rewriting of plain Markdown into MyST that the book's build does."""

import json
from types import SimpleNamespace

import pytest

from sphinxext.plain_markdown import BOXES, THEOREMS, box, on_source_read, rewrite


def lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


@pytest.mark.parametrize("kind", THEOREMS)
def test_theorem_kinds_become_numbered_boxes(kind):
    text = rewrite(
        f'Before.\n\n> **{kind.capitalize()} (Mean centre).** <a id="thm-mean"></a> The mean.\n> Its rest.'
        "\n\nAfter."
    )
    assert lines(text) == [
        "Before.",
        f":::::{{prf:{kind}}} Mean centre",
        ":label: thm-mean",
        "The mean.",
        "Its rest.",
        ":::::",
        "After.",
    ]


@pytest.mark.parametrize("kind,css", BOXES.items())
def test_other_kinds_become_admonitions_with_their_class(kind, css):
    assert lines(rewrite(f"> **{kind}.** One line.")) == [
        f":::::{{admonition}} [{kind}]{{.kind}}",
        f":class: {css}",
        "One line.",
        ":::::",
    ]
    titled = lines(rewrite(f'> **{kind} (In short).** <a id="q-short"></a>\n> One line.'))
    assert titled == [
        f":::::{{admonition}} [{kind}]{{.kind}} In short",
        f":class: {css}",
        ":name: q-short",
        "One line.",
        ":::::",
    ]


def test_each_kind_of_admonition_has_a_class_of_its_own():
    assert len(set(BOXES.values())) == len(BOXES)


def test_exercise_with_a_difficulty_before_its_text():
    text = rewrite('> **Exercise (Three tokens).** <a id="ex-three"></a> ●● 10 min ★ What drops?')
    assert lines(text) == [
        ":::::{exercise} Three tokens",
        ":label: ex-three",
        "●● 10 min ★ What drops?",
        ":::::",
    ]


def test_title_and_label_may_be_left_out():
    assert lines(rewrite("> **Theorem.** It holds.")) == [":::::{prf:theorem}", "It holds.", ":::::"]
    assert lines(rewrite("> **Exercise.** Do it.")) == [":::::{exercise}", "Do it.", ":::::"]


def test_title_may_hold_brackets_and_formulas():
    assert (
        lines(rewrite("> **Lemma (Norms (two) of $f(x)$).** Text."))[0]
        == ":::::{prf:lemma} Norms (two) of $f(x)$"
    )


def test_the_directive_stands_apart_from_the_lines_around_it():
    out = rewrite("Before.\n> **Theorem.** It holds.\nAfter.").split("\n")
    start, end = out.index(":::::{prf:theorem}"), out.index(":::::")
    assert out[start - 1] == out[start + 1] == out[end + 1] == ""


def test_display_maths_list_and_code_inside_a_box_keep_their_lines():
    body = [
        "The centre:",
        "",
        "$$",
        r"\mu = \tfrac1n \sum_i x_i",
        "$$",
        "",
        "- one",
        "  - two",
        "",
        "```python",
        "x = 1",
        "```",
    ]
    quoted = "\n".join(f"> {line}".rstrip() for line in ['**Theorem (A).** <a id="thm-a"></a>', *body])
    out = rewrite(quoted).split("\n")
    assert out[out.index(":label: thm-a") + 3 : out.index(":::::")] == body


def test_display_maths_with_a_line_that_begins_with_greater_than_stays():
    text = "$$\na\n> b\n$$"
    assert rewrite(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "> **Proof.** The mean minimises.",
        "> Just a quotation.",
        "> **Bold** words without a head.",
        "> **Predict** has no full stop inside.",
        "> **theorem.** Not capitalised.",
        "Plain words with **Theorem.** in bold.",
        "",
    ],
)
def test_unknown_heads_stay_as_they_are(text):
    assert rewrite(text) == text
    if text.startswith(">"):
        assert box([text.removeprefix("> ")]) is None


def test_two_boxes_in_one_cell_stay_two():
    out = lines(rewrite("> **Result (A).** One.\n\n> **Result (B).** Two."))
    assert [line for line in out if line.startswith(":::::{")] == [
        ":::::{admonition} [Result]{.kind} A",
        ":::::{admonition} [Result]{.kind} B",
    ]
    assert out.count(":::::") == 2


@pytest.mark.parametrize("fence", ["```", "~~~", "````", "```md"])
def test_code_fences_stay_as_they_are(fence):
    close = fence.removesuffix("md")
    inside = f"{fence}\n> **Theorem.** Not a box.\n[A](#thm-a) [B](b.ipynb#ex-b) [C](#cite-c2020c)\n{close}\n"
    assert rewrite(inside) == inside
    out = rewrite(f"{inside}> **Theorem.** A box.\n\n{inside}[A](#thm-a)")
    assert out.count(inside) == 2
    assert ":::::{prf:theorem}" in out and out.endswith("{prf:ref}`thm-a`")


def test_another_marker_does_not_close_a_fence():
    text = "````\n```\n> **Theorem.** Not a box.\n```\n~~~\n[A](#thm-a)\n````"
    assert rewrite(text) == text


@pytest.mark.parametrize("prefix", "thm lem prop cor def exa rem".split())
@pytest.mark.parametrize("chapter", ["", "softmax-shift-invariance.ipynb"])
def test_theorem_links_become_numbers_from_any_chapter(prefix, chapter):
    assert (
        rewrite(f"By [Theorem (Mean)]({chapter}#{prefix}-mean), yes.")
        == f"By {{prf:ref}}`{prefix}-mean`, yes."
    )


def test_links_may_break_over_lines_also_inside_a_box():
    assert rewrite("see [Theorem\n(Mean)](#thm-mean)") == "see {prf:ref}`thm-mean`"
    assert "see {prf:ref}`thm-mean`" in rewrite("> **Result.** see [Theorem\n> (Mean)](#thm-mean)")


def test_exercise_and_question_links_lose_only_the_chapter():
    assert (
        rewrite("[Exercise 2](other.ipynb#ex-two) and [this](other.ipynb#q-why)")
        == "[Exercise 2](#ex-two) and [this](#q-why)"
    )
    assert rewrite("[Exercise 2](#ex-two)") == "[Exercise 2](#ex-two)"


def test_citations_go_to_the_chapters_own_list():
    assert rewrite("([Dong et al., 2021](#cite-dong2021attention))") == (
        '(<a class="citation" href="#cite-dong2021attention">Dong et al., 2021</a>)'
    )


@pytest.mark.parametrize(
    "text",
    [
        "[Chapter 1](attention-and-residual.ipynb)",
        "[Chapter 1](attention-and-residual.ipynb#the-rank-never-falls)",
        "[paper](https://arxiv.org/abs/2103.03404)",
        '<a id="cite-dong2021attention"></a>Dong',
        "$[a](b)$ and $$ x $$ (eq-x) and [(eq-x)](#eq-x)",
    ],
)
def test_other_links_and_formulas_stay_as_they_are(text):
    assert rewrite(text) == text


def test_only_markdown_cells_of_notebooks_are_rewritten():
    box_text = "> **Theorem.** It holds."
    cells = [
        {"cell_type": "markdown", "source": ["> **Theorem.**", " It holds."]},
        {"cell_type": "markdown", "source": box_text},
        {"cell_type": "code", "source": box_text, "outputs": [], "metadata": {}},
    ]
    notebook = json.dumps({"cells": cells, "metadata": {"a": 1}})

    def read(path, text):
        app = SimpleNamespace(env=SimpleNamespace(doc2path=lambda name: path))
        source = [text]
        on_source_read(app, "a", source)
        return source[0]

    out = json.loads(read("chapters/a.ipynb", notebook))
    assert out["cells"][0]["source"] == out["cells"][1]["source"] == rewrite(box_text) != box_text
    assert out["cells"][2] == cells[2] and out["metadata"] == {"a": 1}
    assert read("chapters/a.md", box_text) == box_text
