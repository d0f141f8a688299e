"""What happens to a running data plane."""
