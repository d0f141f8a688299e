"""What is usual of a pipe and what is not. Pure: neither clock nor chance, rows nor clients."""
