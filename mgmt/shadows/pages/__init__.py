"""Pages of shadow runs."""
