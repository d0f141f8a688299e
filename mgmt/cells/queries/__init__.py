"""Queries (reads) of the feature `cells`."""
