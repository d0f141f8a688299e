"""The API's views, one module a resource. Each takes rows from mgmt.access and gives writes to mgmt.services."""
