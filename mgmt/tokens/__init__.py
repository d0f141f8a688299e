"""API tokens of people and service accounts."""
