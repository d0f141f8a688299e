"""Test requests to destinations."""
