"""The REST API under /api/v1/. Reads through mgmt.access, writes through mgmt.services, decides nothing itself."""
