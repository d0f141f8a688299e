"""Services (writes) of the feature `cells`."""
