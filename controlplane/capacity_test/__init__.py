"""Capacity test of a cell: a bounded load test that measures its groups with its own traffic."""
