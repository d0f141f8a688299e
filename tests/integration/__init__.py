"""Parts on real services."""
