"""Models of the feature `tenancy`."""
