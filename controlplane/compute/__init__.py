"""Compute: the port through which a cell's application is asked for, and what keeps it alive."""
