"""Sandbox workers: processes with limits of CPU time and memory in which tenants' code runs for the web process."""
