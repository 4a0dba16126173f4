"""What the main line of the book proves: paths, skips, MLPs, LayerNorm, masks."""
