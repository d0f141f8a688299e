"""Schema registry: subjects of a tenant, and their immutable, numbered versions."""
