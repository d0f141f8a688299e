"""Look-up tables."""
