"""Measures of tokens, spectra and attention matrices."""
