"""Publish tenants' look-up tables: the rows that are newer than those on the topic, and the tables' own records."""
