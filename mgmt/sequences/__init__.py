"""Sequences of keys: gaps, reorderings and repeats that the sequence query found."""
