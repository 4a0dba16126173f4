"""Experiments with two sizes, and their records."""
