"""Outcomes of deliveries: responses, attempts, retries and dead letters."""
