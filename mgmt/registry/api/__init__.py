"""API views of the schema registry: Penstock's own, and the wire API of Confluent's Schema Registry."""
