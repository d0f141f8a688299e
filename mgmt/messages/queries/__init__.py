"""Queries (reads) of the feature `messages`."""
