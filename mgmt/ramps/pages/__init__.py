"""Pages of the console of the feature `ramps`."""
