"""Hostile inputs, written to stop the service, and the code paths that they run through."""
