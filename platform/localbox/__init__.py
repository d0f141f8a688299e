"""The box: real Postgres, Redis, Kafka and Penstock's own processes on one machine, without containers."""
