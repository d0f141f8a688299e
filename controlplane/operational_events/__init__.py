"""Publish operational events of tenants on their topic, from which ingest replicas read them."""
