"""Streaming queries of one Spark application."""
