"""Integration tests: parts of Penstock on real services."""
