"""Logs, metrics, traces, heartbeats and usage of data-plane processes."""
