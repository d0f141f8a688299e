"""Services (writes) of the feature `tenancy`."""
