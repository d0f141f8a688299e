"""Pure decisions of delivery: verdicts, limits, schedules, breakers. No clock, no chance, no client."""
