"""The echo: Penstock's own endpoint for pipes whose owner has no destination yet."""
