"""Right, wrong and malformed answers to the exercises of Chapter 11; wrong ones with a word of the message."""

RIGHT = {
    "read-constant": [-19.05 + 3 * 6.06, -0.87],
    "which-skip": [(0, 1), [0, 1]],
    "next-layer": [-60.0, -59.7, -59.6],
    "other-centre": [0.0137 / 1.984375, 0.0069],
    "larger-values": [0, 0.0],
}
WRONG = {
    "read-constant": [(11.2, "floor"), (3.14, "quotient"), (0.87, "sign"), (5, "this is not it")],
    "which-skip": [((0, 0), "label"), ((1, 0), "other way"), ((1, 1), "nothing")],
    "next-layer": [(-33.2, "linearly"), (-39.7, "doubled"), (60, "sign"), (-100, "this is not it")],
    "other-centre": [(0.02719, "other way"), (0.0137, "definitions"), (0, "never"), (0.5, "this is not it")],
    "larger-values": [(1, "LayerNorm"), (-1, "multiply"), (3, "cube"), (2, "this is not it")],
}
MALFORMED = {
    "read-constant": "-0.87",
    "which-skip": 1,
    "next-layer": "minus sixty",
    "other-centre": [0.0069],
    "larger-values": None.__class__,
}
