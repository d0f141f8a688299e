"""Services (writes) of the feature `alerts`."""
