"""Database engine: Django's Postgres backend, which applies the row scope of the running code to its connections."""
