"""Services (writes) of the feature `ramps`."""
