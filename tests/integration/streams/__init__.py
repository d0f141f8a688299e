"""Streaming queries on one Spark application."""
