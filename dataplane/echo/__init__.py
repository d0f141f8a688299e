"""The echo: a destination of our own for pipes whose owner has no endpoint yet."""
