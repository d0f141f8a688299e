"""The parts of the OpenAPI document that views and serializers do not give."""
