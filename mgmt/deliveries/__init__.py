"""Deliveries: destinations, attempts, dead letters, held messages, redrives."""
