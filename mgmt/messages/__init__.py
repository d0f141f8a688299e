"""Messages: search, journey, receipt."""
