"""Tenants, users, sign-in and secrets."""
