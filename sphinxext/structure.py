"""Figures, tables and folds as elements that say what they are.

A paragraph that begins with **Figure ...** below a cell that draws becomes the caption of its last picture; what the
cell prints stays above. A table gets a caption (the paragraph **Table ...** above it, or the heading it stands
under), and each of its headers a scope. A fold is labelled by the words that it shows.
"""

import re
from html import escape

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode

PICTURE = re.compile(r"<img|<svg|rank-explore")


class figure_box(nodes.General, nodes.Element):
    """A picture with its caption."""


class caption_box(nodes.General, nodes.Element):
    """What a picture shows, in a sentence."""


class table_name(nodes.General, nodes.Element):
    """What a table is about."""


class reference_aside(nodes.General, nodes.Element):
    """A reference in the margin beside the paragraph that cites it, for eyes only: the list at the end is for all."""


def headed(paragraph: nodes.Node, kind: str) -> bool:
    inside = paragraph.children if isinstance(paragraph, nodes.paragraph) else []
    first = next((child for child in inside if child.astext().strip()), None)
    return isinstance(first, nodes.strong) and first.astext().startswith(kind)


def draws(node: nodes.Node) -> bool:
    if any(True for _ in node.findall(nodes.image)):
        return True
    return any(PICTURE.search(raw.astext()) for raw in node.findall(nodes.raw))


def before(node: nodes.Node) -> nodes.Node | None:
    """What is shown above a node: targets of links show nothing."""
    above = node.parent[: node.parent.index(node)]
    return next((other for other in reversed(above) if not isinstance(other, nodes.target)), None)


def pair_figures(doctree: nodes.document) -> None:
    for paragraph in list(doctree.findall(nodes.paragraph)):
        if not headed(paragraph, "Figure"):
            continue
        cell = before(paragraph)
        shown = (
            [n for n in cell.findall(nodes.container) if "cell_output" in n["classes"]]
            if cell is not None
            else []
        )
        pictures = [child for output in shown for child in output if draws(child)]
        if not pictures:
            continue
        picture, output = pictures[-1], pictures[-1].parent
        output.remove(picture)
        if not len(output):
            output.parent.remove(output)
        figure, caption = figure_box(ids=paragraph["ids"]), caption_box()
        caption += paragraph.children
        figure += [picture, caption]
        paragraph.parent.replace(paragraph, figure)


def title_of(node: nodes.Node) -> str:
    while node is not None and not isinstance(node, nodes.section):
        node = node.parent
    return node[0].astext() if node is not None else ""


def has_only_formulas(entry: nodes.entry) -> bool:
    """Programs that check a header for words do not see mathematics, though screen readers do."""
    text = [part for part in entry.findall(nodes.Text) if not isinstance(part.parent, nodes.math)]
    return not any(any(letter.isalnum() for letter in part) for part in text)


def name_tables(doctree: nodes.document) -> None:
    for table in list(doctree.findall(nodes.table)):
        if not any(has_only_formulas(row[0]) for row in table.findall(nodes.row)):
            next(table.findall(nodes.colspec))["stub"] = 1
        above = before(table)
        if headed(above, "Table"):
            words = above.children
            above.parent.remove(above)
            hidden = False
        else:
            words, hidden = [nodes.Text(title_of(table))], True
        if not any(isinstance(child, nodes.title) for child in table):
            table.insert(0, table_name("", *words, classes=["for-ears"] if hidden else []))


CITATION = re.compile(r'href="#(cite-[\w-]+)"')


def set_references(doctree: nodes.document) -> None:
    """Beside the first paragraph of a section that cites a work, the reference itself."""
    entries = {}
    for raw in doctree.findall(nodes.raw):
        if found := re.search(r'id="(cite-[\w-]+)"', raw.astext()):
            entries[found[1]] = re.sub(r"<[^>]+>", "", raw.parent.astext()).strip(" .")
    for section in doctree.findall(nodes.section):
        seen = set()
        for paragraph in [child for child in section if isinstance(child, nodes.paragraph)]:
            cited = CITATION.findall("".join(raw.astext() for raw in paragraph.findall(nodes.raw)))
            for key in dict.fromkeys(cited):
                if key in entries and key not in seen:
                    seen.add(key)
                    section.insert(section.index(paragraph), reference_aside("", nodes.Text(entries[key])))


def arrange(app, doctree, docname):
    if app.builder.format == "html":
        pair_figures(doctree)
        name_tables(doctree)
        set_references(doctree)


# ---------------------------------------------------------------- HTML


def element(tag: str, attributes: str = ""):
    def visit(self, node):
        ids = f' id="{node["ids"][0]}"' if node["ids"] else ""
        classes = f' class="{" ".join(node["classes"])}"' if node["classes"] else ""
        self.body.append(f"<{tag}{ids}{classes}{attributes}>\n")

    def depart(self, node):
        self.body.append(f"</{tag}>\n")

    return visit, depart


def visit_fold(self, node):
    classes = " ".join(node["classes"])
    self.body.append(f'<details class="hide {classes}"><summary>{escape(node["prompt_show"])}</summary>\n')


def depart_fold(self, node):
    self.body.append("</details>\n")


# A derivation is many formulas, and so are the proofs of a long page: they wait as the text of a noscript element, which
# costs no elements, until they are unfolded or printed (reader.js). Without scripts they stand there as they are.
DERIVATION = re.compile(r"<details>\n(<summary>(?:Derivation \(|<b>).*?</summary>)(.*?)</details>", re.S)
FOLD = re.compile(
    r"(<details[^>]*>\s*<summary>.*?</summary>)((?:(?!<noscript>|<details).)*?)</details>", re.S
)
WAITING = r'<details class="derivation">\n\1<noscript>\2</noscript></details>'
HEAVY = 9_000
"""Elements from which on a page packs all its folds."""
# Names, brackets and signs look like the rest of the code (css/code.css): without an element each a page is half as heavy.
PLAIN_CODE = re.compile(
    r'<span class="(?:n|p|o|w|nb|nf|nn|nc|bp|fm|vm|na|nd|ne)">([^<]*)</span>|<span></span>'
)
EXPLORER = '<div class="rank-explore"'
SKIP = '<a class="skip-to-slider" href="#first-slider">Skip to the first slider</a>\n'


def mend_body(app, pagename, templatename, context, doctree):
    body = re.sub(r' id="(?:proof|exercise)-content"', "", context.get("body") or "")  # the same on every box
    body = PLAIN_CODE.sub(r"\1", DERIVATION.sub(WAITING, body))
    if body.count("<") > 2 * HEAVY:  # an element has two tags
        body = FOLD.sub(r"\1<noscript>\2</noscript></details>", body)
    body = re.sub(r'<a class="headerlink"', '<a class="headerlink" tabindex="-1"', body)
    if EXPLORER in body:
        body = SKIP + body.replace(EXPLORER, f'<span id="first-slider" tabindex="-1"></span>{EXPLORER}', 1)
    parts = re.split(r"(<thead>.*?</thead>)", body, flags=re.S)
    for i, part in enumerate(parts):
        scope = "col" if i % 2 else "row"
        parts[i] = re.sub(r"<th(?=[ >])(?![^>]*scope=)", f'<th scope="{scope}"', part)
    context["body"] = "".join(parts)


def setup(app):
    app.add_node(figure_box, html=element("figure"))
    app.add_node(caption_box, html=element("figcaption"))
    app.add_node(table_name, html=element("caption"))
    app.add_node(reference_aside, html=element("div", ' class="margin-reference" aria-hidden="true"'))
    app.add_node(HideCodeCellNode, override=True, html=(visit_fold, depart_fold))
    app.connect("doctree-resolved", arrange, priority=600)
    app.connect("html-page-context", mend_body, priority=800)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
