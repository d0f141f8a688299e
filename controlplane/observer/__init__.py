"""The Observer: stores audit records, heartbeats and other reports of the data plane in Postgres, and seals buckets."""
