"""Schemas of sources."""
