"""Outcomes of deliveries: answers, attempts, retries and dead letters."""
