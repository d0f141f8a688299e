"""Replays: repeated deliveries of the events of a pipe from its ingest topic, counted in accounts of their own."""
