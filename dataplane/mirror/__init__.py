"""The region mirror: a copy of Penstock's topics on a standby Kafka cluster, record for record at the same offsets.

An offset names a message everywhere: in positions of the ledger, in receipts, in redrives, in committed offsets. A
mirror that keeps offsets therefore needs no translation, and a failover is what the ledger already accounts for: a log
that lost its end (decision 0524).
"""
