"""The paper's theorem in its own size: norms, centres, bounds, and where they break."""
