"""Queries (reads) of the feature `deliveries`."""
