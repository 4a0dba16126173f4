"""The book's trained tasks as generators of data, each with what can be had without solving it.

Every function takes an explicit generator. Inputs are integers (examples, tokens) or points (examples,
tokens, 2).
"""

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

import torch
from jaxtyping import Float, Int
from scipy.spatial import ConvexHull
from torch import Tensor

from ranklib._checks import require_instance, require_int, require_positive
from ranklib.tracing.models import number_words

# Side of the square and standard deviation of the shift: as the paper says, and as its code does.
HULLS = {"paper": (1.0, 1.0), "released": (10.0, 3.3)}


def arc_steps(
    points: int = 1000, radius: float = 0.3, dtype: torch.dtype = torch.float64
) -> tuple[Float[Tensor, "steps 2 dim"], Float[Tensor, "steps 2 dim"]]:
    r"""Two opposite points walking along a circle, counter-clockwise: each pair, and the one a step later.

    .. math:: X_t = (p(t), -p(t)), \qquad p(t) = -r (\cos, \sin)(2 \pi t / \text{points})

    The circle has ``points`` points, half of them on each arc, as in the released code. Raises
    ``TypeError`` or ``ValueError`` unless ``points`` is an integer of at least 4 and ``radius`` is
    positive. Source: chapter `drawing-arcs`; the paper's section 4.1.

    >>> x, y = arc_steps(8)
    >>> x.shape, torch.equal(x[1:], y[:-1]), round(x[0].norm(dim=-1).sum().item(), 6)
    (torch.Size([3, 2, 2]), True, 0.6)
    """
    require_int("points", points, 4)
    require_positive("radius", radius)
    angle = 2 * math.pi * torch.arange(points // 2, dtype=torch.float64) / points
    place = -radius * torch.stack([angle.cos(), angle.sin()], -1)
    pairs = torch.stack([place, -place], 1).to(dtype)
    return pairs[:-1], pairs[1:]


def sorting(
    number: int, generator: torch.Generator, letters: int = 10, tokens: int = 8
) -> tuple[Int[Tensor, "number tokens"], Int[Tensor, "number tokens"]]:
    """Sequences of uniform letters, with repeats, and the same letters in order: token i's label is the i-th.

    Raises ``TypeError`` or ``ValueError`` unless all sizes are positive integers. Source: chapter
    `which-paths`; the paper's section 4.2.

    >>> x, y = sorting(100, torch.Generator().manual_seed(0))
    >>> torch.equal(x.sort(-1).values, y), x.max().item()
    (True, 9)
    """
    for name, value in (("number", number), ("letters", letters), ("tokens", tokens)):
        require_int(name, value, 1)
    given = torch.randint(letters, (number, tokens), generator=generator)
    return given, given.sort(-1).values


def sorting_baseline(letters: int = 10, tokens: int = 8) -> float:
    r"""Accuracy of the best predictor that sees a token's position and no letter.

    .. math:: \frac1n \sum_{i=1}^n \max_c P(X_{(i)} = c),
        \qquad P(X_{(i)} \le c) = P(\text{Bin}(n, c/k) \ge i)

    X_(i) is the i-th smallest of n uniform letters out of k. Exact, then rounded. Raises as
    :func:`sorting`. Source: chapter `which-paths`.

    >>> round(sorting_baseline(), 4), sorting_baseline(5, 1)
    (0.3388, 0.2)
    """
    require_int("letters", letters, 1)
    require_int("tokens", tokens, 1)

    def at_most(place: int, letter: int) -> Fraction:
        share = Fraction(letter, letters)
        return sum(
            math.comb(tokens, k) * share**k * (1 - share) ** (tokens - k) for k in range(place, tokens + 1)
        )

    best = [
        max(at_most(place, letter) - at_most(place, letter - 1) for letter in range(1, letters + 1))
        for place in range(1, tokens + 1)
    ]
    return float(sum(best) / tokens)


def convex_hull(
    number: int, generator: torch.Generator, tokens: int = 10, kind: str = "paper"
) -> tuple[Float[Tensor, "number tokens 2"], Int[Tensor, "number tokens"]]:
    """Sets of points, uniform in a square shifted at random, and which of them are vertices of their hull.

    ``kind`` "paper": side 1, shift N(0, 1) in each coordinate; "released": side 10, shift N(0, 3.3^2). One
    shift a set. In float32; the hull is taken of these values. Raises ``TypeError`` or ``ValueError`` for
    an unknown kind, or sizes that are no integers, ``number`` >= 1 and ``tokens`` >= 3. Source: chapter
    `which-paths`; the paper's section 4.2.

    >>> x, y = convex_hull(50, torch.Generator().manual_seed(0))
    >>> x.shape, y.sum(-1).min().item() >= 3
    (torch.Size([50, 10, 2]), True)
    """
    require_int("number", number, 1)
    require_int("tokens", tokens, 3)
    if kind not in HULLS:
        raise ValueError(f"kind: expected one of {tuple(HULLS)}, got {kind!r}; choose one")
    side, shift = HULLS[kind]
    points = side * torch.rand(number, tokens, 2, generator=generator)
    points = points + shift * torch.randn(number, 1, 2, generator=generator)
    labels = torch.zeros(number, tokens, dtype=torch.int64)
    for label, some in zip(labels, points.double().numpy()):
        label[ConvexHull(some).vertices] = 1
    return points, labels


def hull_share(tokens: int = 10) -> float:
    r"""The expected share of hull vertices among n uniform points in a square, exact, then rounded.

    Two points span an edge of the hull if all others lie on one side of their line. Integrated over all
    lines, with A the part cut off and m = n - 2,

    .. math:: \binom n2 \Big(\tfrac43 \int ab\,[A^m + (1-A)^m]_{A = ab/2}
        + \tfrac43 \int A^m \big|_{A = (a+b)/2}\Big)
        \quad \text{edges},

    both over 0 <= a, b <= 1: lines that cut off a corner, and lines between opposite sides. No predictor
    that ignores the points can do better than the larger of this share and its complement. Raises
    ``TypeError`` or ``ValueError`` unless ``tokens`` is an integer of at least 3. Source: chapter
    `which-paths`.

    >>> round(hull_share(), 4), hull_share(3)
    (0.5962, 1.0)
    """
    require_int("tokens", tokens, 3)
    m = tokens - 2
    corner = Fraction(1, 2**m * (m + 2) ** 2)
    corner += sum(Fraction(math.comb(m, j) * (-1) ** j, 2**j * (j + 2) ** 2) for j in range(m + 1))
    across = Fraction(2 ** (m + 2) - 2, 2**m * (m + 1) * (m + 2))
    return float(math.comb(tokens, 2) * Fraction(4, 3) * (corner + across) / tokens)


def number_texts(
    texts: Iterable[str], tokens: int | None = None
) -> tuple[Int[Tensor, "texts tokens"], list[str]]:
    """Words and punctuation of each text as numbers, cut to ``tokens`` each, and what they stand for.

    Lower case; the vocabulary is what is left, in order of first use. ``tokens`` defaults to the shortest
    text's. Raises ``ValueError`` without texts, or if a text is shorter than asked for.

    >>> x, words = number_texts(["Two and two, so.", "So, two and five!"])
    >>> x.tolist(), words
    ([[0, 1, 0, 2, 3, 4], [3, 2, 0, 1, 5, 6]], ['two', 'and', ',', 'so', '.', 'five', '!'])
    """
    texts = list(texts)
    shortest = min(map(len, number_words(texts)[0]), default=0)
    tokens = shortest if tokens is None else tokens
    require_int("tokens", tokens, 1)
    if not 0 < tokens <= shortest:
        raise ValueError(
            f"tokens: expected at most {shortest}, the shortest text's words, got {tokens}; ask for fewer"
        )
    rows, words = number_words(texts, tokens)
    return torch.tensor(rows), words


def random_labels(x: Int[Tensor, "texts tokens"], generator: torch.Generator) -> Int[Tensor, "texts tokens"]:
    """A fair coin for every token, drawn once: to be memorised, not understood.

    >>> random_labels(torch.zeros(2, 3, dtype=torch.int64), torch.Generator().manual_seed(0)).shape
    torch.Size([2, 3])
    """
    require_instance("generator", generator, torch.Generator)
    return torch.randint(2, x.shape, generator=generator)


def shuffled_symbols(
    x: Int[Tensor, "texts tokens"], symbols: int, generator: torch.Generator
) -> Int[Tensor, "texts tokens"]:
    """Synthetic tokens with the repeats of ``x``: each text keeps its counts, but not which symbol is where.

    Each symbol of a text becomes another one out of ``symbols``, drawn for every text anew without
    repetition; then the text is shuffled. Raises ``ValueError`` if a text has more different symbols than
    that.

    >>> x = torch.tensor([[0, 1, 0, 2, 0]])
    >>> y = shuffled_symbols(x, 50, torch.Generator().manual_seed(0))
    >>> sorted(Counter(y[0].tolist()).values())
    [1, 1, 3]
    """
    rows = []
    for row in x:
        kinds, place = row.unique(return_inverse=True)
        if len(kinds) > symbols:
            raise ValueError(f"symbols: expected at least {len(kinds)}, got {symbols}; ask for more")
        fresh = torch.randperm(symbols, generator=generator)[: len(kinds)]
        rows.append(fresh[place][torch.randperm(len(row), generator=generator)])
    return torch.stack(rows)


def memorisation_ceiling(x: Int[Tensor, "texts tokens"], y: Int[Tensor, "texts tokens"]) -> float:
    """The best accuracy of any model without positions on these labels.

    Attention without positions treats equal tokens of one text equally, so it gives them one label: at best
    the more frequent one. Source: chapter `which-paths`.

    >>> memorisation_ceiling(torch.tensor([[4, 4, 4, 9]]), torch.tensor([[1, 0, 1, 0]]))
    0.75
    """
    right = 0
    for row, labels in zip(x.tolist(), y.tolist()):
        counts = Counter(zip(row, labels))
        right += sum(max(counts[word, 0], counts[word, 1]) for word in set(row))
    return right / x.numel()


def expected_ceiling(x: Int[Tensor, "texts tokens"]) -> float:
    """The mean of :func:`memorisation_ceiling` over fair labels: E max(B, m - B) of m equal symbols.

    B is Binomial(m, 1/2). Exact, then rounded. Source: chapter `which-paths`.

    >>> expected_ceiling(torch.tensor([[4, 4, 4, 9]]))
    0.8125
    """
    right = Fraction(0)
    for row in x.tolist():
        for m in Counter(row).values():
            right += Fraction(sum(math.comb(m, b) * max(b, m - b) for b in range(m + 1)), 2**m)
    return float(right / x.numel())
