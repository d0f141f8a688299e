"""The ledger: pure algebra of units, buckets, facts, derived bins and the seal, and the sketches of lag."""
