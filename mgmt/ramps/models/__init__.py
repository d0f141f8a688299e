"""Models of the feature `ramps`."""
