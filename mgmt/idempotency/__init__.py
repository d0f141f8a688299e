"""Idempotency keys: the response of a request is kept, so that a retry gets it instead of a second change."""
