"""The asynchronous face of the web process: bodies are read, and health checks answered, before a thread is taken."""
