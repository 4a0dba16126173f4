"""Plain Markdown in the notebook, numbered boxes and links in the book.

Colab, GitHub and Jupyter do not know MyST directives. The chapters therefore hold plain Markdown, and this
extension rewrites it while Sphinx reads the file; the file on disk is not changed:

  > **Theorem (Mean centre).** <a id="thm-mean"></a> ...  becomes {prf:theorem}, numbered, with a label
  > **Exercise (Three tokens).** <a id="ex-three"></a> ... becomes {exercise}
  > **Predict.** ...                                      becomes an admonition (see BOXES)
  [Theorem (Mean centre)](#thm-mean)                      becomes "Theorem 1.2", linked, from any chapter
  [Dong et al., 2021](#cite-dong2021attention)            becomes a link to the chapter's own reference list

Formulas need no rewriting: $...$ and $$...$$ are MyST already. Folds are HTML <details>, which Colab, GitHub
and the book show alike.
"""

import json
import re

from sphinxext.quiet_code import quieten

THEOREMS = "theorem lemma proposition corollary definition example remark".split()
BOXES = {  # bold head -> class of the admonition
    "You will be able to": "objectives",
    "Result": "result",
    "Predict": "predict",
    "From the paper": "from-paper",
    "What the printed proof misses": "printed-misses",
    "Readers ask": "question",
    "Check": "check",
    "Careful": "careful",
    "Aside": "aside",
    "How the library is sure": "sure",
}
HEAD = re.compile(
    r"\*\*(?P<kind>[A-Z][A-Za-z ]+?)(?:\s+\((?P<title>.+?)\))?\.\*\*\s*"
    r"(?:<a id=\"(?P<label>[\w-]+)\"></a>)?\s*(?P<rest>.*)"
)
HEADING_TARGET = re.compile(r"^<a id=\"[\w-]+\"></a>\n+(?=#)", re.M)
FENCE = re.compile(r"\s*(`{3,}(?!.*`)|~{3,})(.*)")
THEOREM_LINK = re.compile(r"\[[^\]]*\]\((?:[\w-]+\.ipynb)?#((?:thm|lem|prop|cor|def|exa|rem)-[\w-]+)\)")
LABEL_LINK = re.compile(r"\]\((?:[\w-]+\.ipynb)?#((?:ex|q)-[\w-]+)\)")
CITE_LINK = re.compile(r"\[([^\]]*)\]\(#(cite-[\w-]+)\)")


def rewrite(text: str) -> str:
    """The Markdown of one cell, as MyST. Quotations with an unknown head, and code fences, stay."""
    return "".join(part if is_code else rewrite_prose(part) for is_code, part in split_fences(text))


def split_fences(text: str) -> list[tuple[bool, str]]:
    """The text cut into code fences (True) and what lies between them (False)."""
    parts, open_fence = [(False, "")], ""
    for line in text.splitlines(keepends=True):
        marker = FENCE.match(line)
        if marker and not open_fence:
            open_fence = marker[1]
            parts.append((True, line))
            continue
        parts[-1] = (parts[-1][0], parts[-1][1] + line)
        if marker and marker[1].startswith(open_fence) and not marker[2].strip():
            open_fence = ""
            parts.append((False, ""))
    return parts


def rewrite_prose(text: str) -> str:
    out, quote = [], []
    for line in [*text.split("\n"), None]:
        if line is not None and line.startswith(">"):
            quote.append(line)
            continue
        if quote:
            out += box([re.sub(r"^>\s?", "", q) for q in quote]) or quote
            quote = []
        if line is not None:
            out.append(line)
    text = HEADING_TARGET.sub("", "\n".join(out))  # headings have targets of their own
    text = THEOREM_LINK.sub(r"{prf:ref}`\1`", text)
    text = LABEL_LINK.sub(r"](#\1)", text)
    return CITE_LINK.sub(r'<a class="citation" href="#\2">\1</a>', text)


def box(body: list[str]) -> list[str] | None:
    """The lines of one quotation as a directive, or None if its head is not one that we know."""
    match = HEAD.match(body[0])
    if not match:
        return None
    kind, title, label = match["kind"], match["title"], match["label"]
    if kind.lower() in THEOREMS:
        head, options = f"{{prf:{kind.lower()}}} {title or ''}", [f":label: {label}"] if label else []
    elif kind == "Exercise":
        head, options = f"{{exercise}} {title or ''}", [f":label: {label}"] if label else []
    elif kind in BOXES:
        words = f"[{kind}]{{.kind}} {title or ''}".rstrip()
        name = [f":name: {label}"] if label else []
        head, options = f"{{admonition}} {words}", [f":class: {BOXES[kind]}", *name]
    else:
        return None
    return ["", f":::::{head}".rstrip(), *options, "", match["rest"], *body[1:], ":::::", ""]


def on_source_read(app, docname, source):
    if not str(app.env.doc2path(docname)).endswith(".ipynb"):
        return
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = rewrite("".join(cell["source"]))
        else:
            quieten(cell)
    source[0] = json.dumps(notebook)


def setup(app):
    app.connect("source-read", on_source_read)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
