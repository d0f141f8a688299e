"""Pipes: their specs, revisions, sources, keys, and the editor."""
