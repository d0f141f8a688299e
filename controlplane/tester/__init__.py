"""Sends test requests to destinations, as rows ask for them."""
