"""Ramps of revisions and admissions of pipes."""
