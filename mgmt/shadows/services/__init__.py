"""Services of shadow runs."""
