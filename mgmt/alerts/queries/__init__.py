"""Queries (reads) of the feature `alerts`."""
