"""Publishes customers' look-up tables: rows that are newer than what the topic holds, and the tables' own records."""
