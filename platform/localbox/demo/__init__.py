"""The demo: a sender, a receiver, and the comparison of their logs with the ledger. No message passes through it."""
