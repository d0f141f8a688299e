"""The asynchronous front of the web process: reads bodies and handles health checks without using a thread."""
