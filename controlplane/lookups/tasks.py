"""Celery task of the look-up publisher; the logic is in publish.py."""

from functools import cache

from celery import shared_task

from controlplane.lookups.publish import LookupPublisher
from controlplane.settings import control_settings


@cache
def publisher() -> LookupPublisher:
    """Return this process's publisher. Its clients are created at the first tick, never before a fork."""
    return LookupPublisher(control_settings().kafka)


@shared_task(name="lookups.publish")
def publish() -> str:
    """Publish changed look-up tables to their topic.

    Safe to run twice, also concurrently, and to kill at any point: an advisory lock lets one run at a time work, rows
    are marked as sent only after their delivery reports, and rows that are sent again change nothing for readers.
    """
    return publisher().tick()
