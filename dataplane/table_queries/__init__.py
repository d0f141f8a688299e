"""Table queries: look-up table rows of this host over HTTP, by key and by prefix."""
