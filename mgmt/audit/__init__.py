"""Audit log of a tenant: which person, token or part of Penstock changed what, and when."""
