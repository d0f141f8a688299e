"""Services (writes) of the feature `deliveries`."""
