"""Alerts and notification channels."""
