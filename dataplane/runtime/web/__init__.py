"""ASGI helpers for HTTP servers of Penstock."""
