"""Layers followed exactly, far below the floor of floating point."""
