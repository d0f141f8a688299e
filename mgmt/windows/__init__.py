"""Windows of a pipe."""
