"""Operational events: what happens to the pipes of a tenant, for its pipes with a source of type penstock."""
