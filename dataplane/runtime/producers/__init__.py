"""Kafka producers that settle or replace."""
