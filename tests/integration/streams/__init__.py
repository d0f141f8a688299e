"""Spark's queries, on one application."""
