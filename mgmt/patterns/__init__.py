"""Detection of unusual behaviour of pipes. Pure: no clock, randomness, database or clients."""
