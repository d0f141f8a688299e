"""Services (writes) of the feature `pipes`."""
