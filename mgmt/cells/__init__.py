"""Cells of the data plane and their controllers; for staff."""
