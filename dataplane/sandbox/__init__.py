"""Sandbox workers: processes with limits of CPU time and memory that run tenants' code for the web process."""
