"""Pages of the console of the feature `alerts`."""
