"""Steps of a derivation, and how each is decided."""
