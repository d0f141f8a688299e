"""Webhook sources: which sender posts to a source's URL, and the secrets with which its requests are verified."""
