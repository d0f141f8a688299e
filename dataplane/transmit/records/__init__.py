"""Deliveries to Penstock's own topics: topic, table and lake destinations."""
