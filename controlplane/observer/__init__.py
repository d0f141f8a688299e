"""The Observer: reads what the data plane says of itself into rows, and seals minutes."""
