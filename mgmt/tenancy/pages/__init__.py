"""Pages of tenancy."""
