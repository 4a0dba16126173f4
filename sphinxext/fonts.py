"""The book's fonts, cut to the characters that its pages show.

Text is set in STIX, mathematics in STIX Two Math: one design, and the first two with which browsers lay out
MathML and text alike. The files come out of the installed packages matplotlib and ziamath; nothing is committed.
"""

import re
from html import unescape
from importlib.metadata import files
from pathlib import Path

FONTS = {  # name in the site: package, file
    "text": ("matplotlib", "STIXGeneral.ttf"),
    "text-italic": ("matplotlib", "STIXGeneralItalic.ttf"),
    "text-bold": ("matplotlib", "STIXGeneralBol.ttf"),
    "text-bold-italic": ("matplotlib", "STIXGeneralBolIta.ttf"),
    "math": ("ziamath", "STIXTwoMath-Regular.ttf"),
}
FORMULA = re.compile(r"<math.*?</math>", re.S)
# What browsers draw although no page holds it: roots, and the slanted form of a single letter.
DRAWN = {*"√∛ℎ", *map(chr, range(0x1D434, 0x1D468)), *map(chr, range(0x1D6E2, 0x1D71C))}
PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))


def find(package: str, name: str) -> Path:
    found = [f.locate() for f in files(package) or [] if f.name == name]
    if not found:
        raise RuntimeError(
            f"fonts: expected {name} in the package {package}; run 'make clean' and 'make book'"
        )
    return Path(found[0])


def shown(folder: Path) -> tuple[set[str], set[str]]:
    """The characters of all pages: in their text, and in their formulas."""
    text, formulas = set(PRINTABLE), set(PRINTABLE) | DRAWN
    for page in folder.rglob("*.html"):
        source = unescape(page.read_text())
        text |= set(FORMULA.sub("", source))
        formulas |= set("".join(FORMULA.findall(source)))
    return text, formulas


def cut(source: Path, characters: set[str], target: Path) -> None:
    """Write those characters of a font as WOFF2, with what mathematics and kerning need."""
    from fontTools.subset import Options, Subsetter, load_font, save_font

    options = Options(
        flavor="woff2", layout_features=["kern", "liga", "ssty", "mark", "mkmk"], notdef_outline=True
    )
    options.drop_tables += ["FFTM"]
    font = load_font(str(source), options)
    if "MATH" in font:
        narrow_roots(font)
    cutter = Subsetter(options)
    cutter.populate(unicodes=[ord(c) for c in characters])
    cutter.subset(font)
    save_font(font, str(target), options)


def narrow_roots(font) -> None:
    """Make taller root signs as wide as the usual one: browsers reserve the width of the widest for each of them."""
    variants = font["MATH"].table.MathVariants
    name = font.getBestCmap()[ord("√")]
    root = variants.VertGlyphConstruction[variants.VertGlyphCoverage.glyphs.index(name)]
    taller = {record.VariantGlyph for record in root.MathGlyphVariantRecord}
    taller |= {part.glyph for part in root.GlyphAssembly.PartRecords}
    width = font["hmtx"][name][0]
    for glyph in taller - {name}:
        advance, bearing = font["hmtx"][glyph]
        font["glyf"][glyph].coordinates.scale((width / advance, 1))
        font["hmtx"][glyph] = (width, round(bearing * width / advance))


def write(app, failure):
    if failure or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    target = folder / "_static" / "book" / "fonts"
    target.mkdir(parents=True, exist_ok=True)
    text, formulas = shown(folder)
    for name, (package, file) in FONTS.items():
        cut(find(package, file), formulas if name == "math" else text, target / f"{name}.woff2")


def setup(app):
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
