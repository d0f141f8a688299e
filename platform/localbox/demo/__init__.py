"""The demo: a sender, a receiver, and the comparison of their logs with the ledger. None of it is on the path."""
