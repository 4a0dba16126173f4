"""The directive ``statements``: a list of all numbered statements with their names."""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class statement_list(nodes.General, nodes.Element):
    """Where the list goes, once every chapter has been read."""


class Statements(SphinxDirective):
    def run(self):
        self.env.note_reread()
        return [statement_list()]


def fill(app, doctree, docname):
    for place in list(doctree.findall(statement_list)):
        found = []
        for chapter in app.env.toctree_includes[app.config.root_doc]:
            tree = app.env.get_doctree(chapter)
            lines = [
                line(app, node, chapter, docname)
                for node in tree.findall(nodes.Element)
                if node.get("realtype")
            ]
            if lines:
                title = nodes.title("", "", nodes.Text(app.env.titles[chapter].astext()))
                name = chapter.split("/")[-1]
                found.append(
                    nodes.section("", title, nodes.bullet_list("", *lines), ids=[name], names=[name])
                )
        place.replace_self(found)


def line(app, node, chapter, docname):
    """Theorem 4.1 with its name, as a link to its place."""
    numbers = app.env.toc_fignumbers.get(chapter, {}).get(node["countertype"], {})
    number = ".".join(map(str, numbers.get(node["ids"][0], ())))
    target = f"{app.builder.get_relative_uri(docname, chapter)}#{node['ids'][0]}"
    words = [nodes.Text(f"{node['realtype'].capitalize()} {number}"), *node[0].deepcopy().children]
    link = nodes.reference("", "", *words, refuri=target, internal=True)
    return nodes.list_item("", nodes.paragraph("", "", link))


def setup(app):
    app.add_node(statement_list)
    app.add_directive("statements", Statements)
    app.connect("doctree-resolved", fill, priority=300)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
