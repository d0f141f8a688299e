"""The control plane: makes topics, control records and applications match the rows, and reports in rows."""
