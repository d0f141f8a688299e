"""Queries (reads) of the feature `lookups`."""
