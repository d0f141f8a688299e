"""Inputs that were written to stop the service, and the paths that they are run through."""
