"""Queries (reads) of the feature `ledger`."""
