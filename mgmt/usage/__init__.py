"""Usage of pipes and tenants."""
