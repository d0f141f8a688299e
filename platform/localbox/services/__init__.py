"""Postgres, Redis and Kafka as programs of the box: their binaries, preparation, start and readiness."""
