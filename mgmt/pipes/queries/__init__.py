"""Queries (reads) of the feature `pipes`."""
