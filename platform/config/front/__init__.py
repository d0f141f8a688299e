"""The asynchronous front of the web process: reads bodies and answers health checks without using a thread."""
