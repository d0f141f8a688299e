"""Services (writes) of the feature `tokens`."""
