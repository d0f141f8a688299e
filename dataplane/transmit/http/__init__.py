"""HTTP requests: the sender, signatures, secrets, and excerpts of responses."""
