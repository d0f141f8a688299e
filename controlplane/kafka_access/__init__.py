"""Principals and ACLs of Penstock's own Kafka: those of its processes, and those of tenants that read their topics."""
