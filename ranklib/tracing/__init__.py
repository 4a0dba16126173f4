"""Measuring a model layer by layer, with parts switched off."""
