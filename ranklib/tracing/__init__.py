"""Measuring a model layer by layer, with parts switched off."""

from ranklib._door import door

__all__, __getattr__, __dir__ = door(
    __name__,
    {
        "layerwise": "Trace trace",
        "switches": "switched_off",
        "conversion": "as_network",
        "deep": "DeepTrace deep_trace",
        "models": "load_model tokenise label_ids why_missing Missing",
    },
)
