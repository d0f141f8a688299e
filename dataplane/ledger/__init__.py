"""The ledger: units, buckets, facts, the bins derived from them, the account of a bucket, and the sketches of lag."""
