"""Compute: the port through which controllers ask for a cell's application, and the processes that keep it alive."""
