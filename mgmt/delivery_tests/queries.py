"""Queries of test requests."""

from django.db.models import QuerySet

from mgmt.models import Destination, DestinationTest


def latest_tests(destination: Destination) -> QuerySet[DestinationTest]:
    """Return the test requests of a saved destination, newest first; they are kept for a day."""
    rows = DestinationTest.objects.filter(pipe=destination.pipe_id, destination=destination.name)
    return rows.order_by("-created_at")
