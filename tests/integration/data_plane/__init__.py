"""Streaming queries and jobs of one Spark application."""
