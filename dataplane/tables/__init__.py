"""Configuration as data: the compacted control topic held as a local table, with a snapshot on disk."""
