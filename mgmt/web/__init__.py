"""Shared by the pages and the API: access control, rendering, problems, pagination."""
