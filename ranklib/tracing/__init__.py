"""Measuring a model layer by layer, with parts switched off."""

from ranklib._door import door

__all__, __getattr__, __dir__ = door(
    __name__,
    {
        "layerwise": "Trace trace",
        "switches": "switched_off",
        "deep": "DeepTrace as_network deep_trace",
        "models": "load_model tokenise label_ids why_missing Missing",
    },
)
