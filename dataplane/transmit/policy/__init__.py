"""Pure decisions of delivery: verdicts, limits, schedules, breakers. No clock, no randomness, no client."""
