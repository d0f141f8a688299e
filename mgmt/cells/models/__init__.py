"""Models of the feature `cells`."""
