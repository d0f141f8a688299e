"""Deliveries: units or batches that are being sent, and how they are rendered."""
