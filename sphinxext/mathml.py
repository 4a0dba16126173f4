"""Formulas are typeset while the book is built, as MathML: the page needs no typesetter.

KaTeX reads the TeX. It runs in QuickJS, inside this process. Both come out of installed packages
(sphinxcontrib-katex, quickjs-ng), so neither node nor a network is needed. Browsers draw MathML themselves, and
screen readers read it. What browsers do not follow in KaTeX's MathML is mended here: letters in another alphabet
become the characters that Unicode has for them, a function's name keeps its distance, roots are as high as a tall letter, and elements that only
group one element go.
"""

import json
import re
from functools import cache
from html import escape
from importlib.metadata import files
from xml.etree import ElementTree

from docutils import nodes
from sphinx.util import logging

log = logging.getLogger(__name__)
MATHML = "{http://www.w3.org/1998/Math/MathML}"
THIN = "0.1667em"
STRUT = "0.68em"
"""The least height under a root: over a low letter Chromium hangs the sign below the line."""
BARS = {"∥": "‖", "∣": "|"}
"""Norms and absolute values: the signs that browsers stretch, and that are not read as "parallel" and "divides"."""
GROUPS = ("math", "mrow", "mstyle", "mtd")
SIGNS = ("+", "−", "±", "∓")
"""Signs that would stand close to what follows, were there nothing before them."""
# Names that LaTeX takes as an exponent or index without braces.
BARE = re.compile(r"([_^])(\\(?:max|min|sup|inf))(?![A-Za-z])")
# An index on a letter that has one, as sympy prints the entries of a matrix called P_1.
TWICE = re.compile(r"([A-Za-z]_\{\w+\})(?=_\{)")
STARTS = {  # first code point of A, a, 0, alpha in each alphabet
    "bold": (0x1D400, 0x1D41A, 0x1D7CE, 0x1D6A8),
    "italic": (0x1D434, 0x1D44E, None, 0x1D6E2),
    "bold-italic": (0x1D468, 0x1D482, None, 0x1D71C),
    "double-struck": (0x1D538, 0x1D552, 0x1D7D8, None),
    "script": (0x1D49C, 0x1D4B6, None, None),
    "fraktur": (0x1D504, 0x1D51E, None, None),
    "sans-serif": (0x1D5A0, 0x1D5BA, 0x1D7E2, None),
    "monospace": (0x1D670, 0x1D68A, 0x1D7F6, None),
}
# Letters that Unicode had before it got the alphabets.
OLDER = {
    "double-struck": dict(zip("CHNPQRZ", "ℂℍℕℙℚℝℤ")),
    "script": dict(zip("BEFHILMRego", "ℬℰℱℋℐℒℳℛℯℊℴ")),
    "fraktur": dict(zip("CHIRZ", "ℭℌℑℜℨ")),
    "italic": {"h": "ℎ"},
}


@cache
def katex():
    """A function from (TeX, display?) to KaTeX's MathML, or to "!" and what is wrong."""
    import quickjs

    (script,) = [f for f in files("sphinxcontrib-katex") if f.name == "katex.min.js"]
    engine = quickjs.Context()
    engine.eval(script.locate().read_text())
    return engine.eval(
        """(tex, displayMode) => {
          const options = {displayMode, output: "mathml", strict: false};
          try { return JSON.stringify(katex.renderToString(tex, options)); }
          catch (error) { return JSON.stringify("!" + error.message); }
        }"""
    )


@cache
def to_mathml(tex: str, display: bool = False) -> str:
    r"""The formula as one ``<math>`` element.

    Raises
    ------
    ValueError
        The formula cannot be read.

    Example
    -------
    >>> to_mathml(r"x^2 \\in \\mathbb R")
    '<math><msup><mi>x</mi><mn>2</mn></msup><mo>∈</mo><mi>ℝ</mi></math>'
    """
    found = json.loads(katex()(TWICE.sub(r"{\1}", BARE.sub(r"\1{\2}", tex.strip())), display))
    if found.startswith("!"):
        raise ValueError(f"formula: expected TeX that KaTeX reads, got {tex!r}: {found[1:]}")
    math = ElementTree.fromstring(found).find(f"{MATHML}math")
    return ElementTree.tostring(tidy(math, display), encoding="unicode")


def tidy(math: ElementTree.Element, display: bool) -> ElementTree.Element:
    content = math.find(f"{MATHML}semantics")[0]
    out = ElementTree.Element("math", {"display": "block"} if display else {})
    out.append(content)
    for element in out.iter():
        element.tag = element.tag.removeprefix(MATHML)
        element.text = BARS.get(element.text, element.text)
        if variant := element.attrib.get("mathvariant"):
            restyle(element, variant)
    join_words(out)
    separate_names(out)
    flatten(out)
    for root in out.iter("msqrt"):
        root.insert(0, ElementTree.Element("mspace", height=STRUT))
    if content.tag == "mrow" and not content.attrib:
        out[:] = list(content)
    return out


def restyle(element: ElementTree.Element, variant: str) -> None:
    """Write letters of an alphabet as its characters: browsers know no other variant than "normal"."""
    text = element.text or ""
    if variant == "normal":
        if element.tag != "mi" or len(text) != 1 or not text.isalpha():
            del element.attrib["mathvariant"]  # upright anyway
        return
    element.text = "".join(styled(letter, variant) for letter in text)
    del element.attrib["mathvariant"]


def join_words(parent: ElementTree.Element) -> None:
    """One element for an upright word such as "res", which KaTeX writes letter by letter."""
    for child in parent:
        join_words(child)
    letters = [child.text or "" for child in parent if child.attrib.get("mathvariant") == "normal"]
    if (
        parent.tag == "mrow"
        and len(letters) == len(parent) > 1
        and all(re.fullmatch("[A-Za-z]", x) for x in letters)
    ):
        parent[:] = [ElementTree.Element("mi")]
        parent[0].text = "".join(letters)


def styled(letter: str, variant: str) -> str:
    if letter in OLDER.get(variant, {}):
        return OLDER[variant][letter]
    capital, small, digit, greek = STARTS.get(variant, (None,) * 4)
    for first, last, start in (("A", "Z", capital), ("a", "z", small), ("0", "9", digit)):
        if first <= letter <= last and start:
            return chr(start + ord(letter) - ord(first))
    if greek and "Α" <= letter <= "ω":
        shift = ord(letter) - (ord("Α") if letter <= "Ω" else ord("α") - 26)
        return chr(greek + shift)
    return letter


APPLY = "\u2061"


def separate_names(parent: ElementTree.Element) -> bool:
    """Keep a thin space round the name of a function, where no sign or bracket does; is ``parent`` such a name?

    KaTeX marks a name by the invisible sign of application behind it, also where a script has no room for it.
    """
    children = list(parent)
    marked = [i for i, child in enumerate(children[1:]) if child.tag == "mo" and child.text == APPLY]
    names = {id(children[i]) for i in marked}
    parent[:] = [child for child in children if child.tag != "mo" or child.text != APPLY]
    names |= {id(child) for child in parent if separate_names(child)}
    if parent.tag not in GROUPS:
        return (
            bool(len(parent)) and id(parent[0]) in names and parent.tag.startswith(("msu", "munder", "mover"))
        )
    if len(parent) == 1 and parent.tag == "mrow":
        return id(parent[0]) in names
    for i, child in reversed(list(enumerate(parent))):
        if id(child) not in names:
            continue
        if i + 1 < len(parent) and not opens(parent[i + 1]):
            parent.insert(i + 1, applied())
        before = parent[i - 1] if i else None
        if before is not None and (before.text == ")" or not opens(before)):
            parent.insert(i, ElementTree.Element("mspace", width=THIN))
    return False


def applied() -> ElementTree.Element:
    sign = ElementTree.Element("mo", rspace=THIN)
    sign.text = APPLY
    return sign


def opens(element: ElementTree.Element) -> bool:
    """Whether the element keeps its own distance from what stands before it: a bracket, a sign, a space."""
    while len(element) and element.tag in ("mrow", "mstyle", "msup", "msub", "msubsup"):
        element = element[0]
    return element.tag in ("mspace", "mo") or (element.text or "x").isspace()


def flatten(parent: ElementTree.Element) -> None:
    """Drop groups of one element, and let a cell carry the style of its content."""
    for i, child in enumerate(list(parent)):
        flatten(child)
        while child.tag == "mrow" and len(child) == 1 and not child.attrib:
            child = child[0]
        parent[i] = child
    while parent.tag == "mtd" and len(parent) == 1 and parent[0].tag in ("mstyle", "mrow"):
        parent.attrib.update(parent[0].attrib)
        parent[:] = list(parent[0])
    if parent.tag in GROUPS:
        children = list(parent)
        for child, after in zip(children, [*children[1:], None]):
            empty = child.tag == "mrow" and not len(child)
            if empty and (after is None or after.text not in SIGNS):
                parent.remove(child)


# ---------------------------------------------------------------- Sphinx

# A formula and what may not be parted from it at the end of a line.
BEFORE = re.compile(r"[(\[‘“]+$")
AFTER = re.compile(r"^(?:[.,;:!?)\]’”'\"%]+|[-–/])")


def keep_together(app, doctree, docname):
    """Move the signs that touch a formula into its node, so that no line begins or ends between them."""
    for node in list(doctree.findall(nodes.math)):
        parent, place = node.parent, node.parent.index(node)
        before = parent[place - 1] if place else None
        after = parent[place + 1] if place + 1 < len(parent) else None
        if isinstance(after, nodes.Text) and (found := AFTER.match(after)):
            node["after"] = found[0]
            parent.replace(after, nodes.Text(after[found.end() :]))
        if isinstance(before, nodes.Text) and (found := BEFORE.search(before)):
            node["before"] = found[0]
            parent.replace(before, nodes.Text(before[: found.start()]))


def typeset(node, display: bool) -> str:
    tex = node.astext()
    if display and "\\\\" in tex and "\\begin" not in tex:
        tex = rf"\begin{{aligned}}{tex}\end{{aligned}}"
    try:
        return to_mathml(tex, display)
    except ValueError as error:
        log.warning("%s", error, location=node)
        return f'<code class="tex-error">{escape(tex)}</code>'


def visit_math(self, node):
    before, after = (escape(node.get(side, "")) for side in ("before", "after"))
    self.body.append(f'<span class="math">{before}{typeset(node, False)}{after}</span>')
    raise nodes.SkipNode


def visit_displaymath(self, node):
    number = f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
    classes = "math numbered" if number else "math"
    self.body.append(self.starttag(node, "div", "", CLASS=classes))
    self.body.append(f"{typeset(node, True)}{number}</div>\n")
    raise nodes.SkipNode


def choose(app, config):
    config.html_math_renderer = "mathml"


def setup(app):
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    app.connect("config-inited", choose, priority=950)
    app.connect("doctree-resolved", keep_together)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
