"""Rows that end at a time of their own, such as keys and tokens."""

from datetime import datetime

from django.db.models import Q
from django.db.models.functions import Now


def unexpired(now: datetime | Now) -> Q:
    """Return the condition for rows whose `expires_at` is not reached, or null: never."""
    return Q(expires_at=None) | Q(expires_at__gt=now)
