"""Faults of a running data plane."""
