"""Postgres, Redis and Kafka: where each comes from, how it is prepared, started and known to be ready."""
