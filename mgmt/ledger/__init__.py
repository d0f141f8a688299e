"""The ledger's rows: facts, seals, and the figures derived from them."""
