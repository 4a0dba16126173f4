"""Layers followed exactly, far below the floor of floating point."""

from ranklib._door import door

__all__, __getattr__, __dir__ = door(
    __name__,
    {
        "state": "ResidualState",
        "verdicts": "Hypothesis Bounds Check",
        "propagation": "propagate propagate_layer trajectory",
    },
)
