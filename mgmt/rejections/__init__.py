"""Rejected events: what ingest refused and what did not fit event types, by type, reason and sender."""
