"""Numbers and names as they are printed and as they are read aloud: 10⁻⁶, d with the index qk, log base ten."""

import html
import re
from numbers import Real

_RAISED = str.maketrans("0123456789-−+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻⁺")
_LOWERED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789−")
_WORDS = {
    "log₁₀": "log base ten",
    "log₂": "log base two",
    "≤": "at most",
    "≥": "at least",
    "≈": "about",
    "∞": "infinity",
    "√": "the root of ",
    "½": "one half",
    "¼": "one quarter",
    "²": " squared",
    "³": " cubed",
}


def number(value: Real) -> str:
    """A number as it is printed: three digits, a real minus sign, a power of ten for very small and very large.

    Example
    -------
    >>> number(0.25), number(-3), number(1e-6), number(2.5e-7)
    ('0.25', '−3', '10⁻⁶', '2.5·10⁻⁷')
    """
    return printed(f"{value:.3g}" if isinstance(value, float) else f"{value}")


def printed(text: str) -> str:
    """Typewriter forms as printed ones: ``log10`` is log₁₀, ``1e-06`` is 10⁻⁶, ``10^-3`` is 10⁻³, ``-3`` is −3.

    An exponent that is no whole number, and an index, keep braces for :func:`to_markup`:
    ``10^{3.5}``, ``d_{qk}``.

    Example
    -------
    >>> printed("d_qk 8: log10 is -631, 1e-06 of 10^-3")
    'd_{qk} 8: log₁₀ is −631, 10⁻⁶ of 10⁻³'
    """
    text = re.sub(r"\blog10\b", "log₁₀", re.sub(r"\blog2\b", "log₂", text))
    text = re.sub(r"(\d(?:\.\d+)?)e([+-]?\d+)\b", _scientific, text)
    text = re.sub(r"(?<=\w)\^\{?([-−+]?\d+)(?![.\d])\}?", lambda m: m[1].translate(_RAISED), text)
    text = re.sub(r"(?<=\w)\^([-−]?\d+\.\d+)", lambda m: f"^{{{m[1].replace('-', '−')}}}", text)
    text = re.sub(r"\b([A-Za-zα-ω])_([A-Za-z0-9]+)\b", r"\1_{\2}", text)
    return re.sub(r"(?<![\w.)])-(?=\d)", "−", text)


def to_markup(text: str) -> str:
    """Printed text as HTML: escaped, indices and exponents in ``sub`` and ``sup``.

    Example
    -------
    >>> to_markup("d_qk < 10^3.5")
    'd<sub>qk</sub> &lt; 10<sup>3.5</sup>'
    """
    text = html.escape(printed(text))
    text = re.sub(r"_\{([^{}]*)\}", r"<sub>\1</sub>", text)
    return re.sub(r"\^\{([^{}]*)\}", r"<sup>\1</sup>", text)


def in_words(text: str) -> str:
    """Printed text as a voice should read it.

    Example
    -------
    >>> in_words("d_qk 8: log10 is -631, below 1e-06.")
    'd q k 8: log base ten is minus 631, below 10 to the minus 6.'
    """
    text = printed(text)
    text = re.sub(r"(\w?)_\{(\w+)\}", lambda m: f"{m[1]} {' '.join(m[2])}", text)
    text = re.sub(r"\^\{([^{}]*)\}", r" to the \1", text)
    text = re.sub(r"(?<=10)([⁻⁰-⁹¹²³]+)", lambda m: f" to the {m[1].translate(_LOWERED)}", text)
    text = text.replace("·", " times ")
    for sign, word in _WORDS.items():
        text = text.replace(sign, word)
    return re.sub(r"−\s?(?=\d)", "minus ", text)


def spoken(value) -> str:
    """The printed name of a parameter's value: 'on' and 'off', numbers as :func:`number` prints them.

    Example
    -------
    >>> spoken(True), spoken(0.25), spoken(-3), spoken("no mask")
    ('on', '0.25', '−3', 'no mask')
    """
    if isinstance(value, bool):
        return "on" if value else "off"
    return number(value) if isinstance(value, Real) else str(value)


def _scientific(match: re.Match) -> str:
    power = str(int(match[2])).translate(_RAISED)
    return f"10{power}" if match[1] == "1" else f"{match[1]}·10{power}"
