"""Sender of rows to customers' Postgres databases. The only part of the data plane that imports psycopg."""
