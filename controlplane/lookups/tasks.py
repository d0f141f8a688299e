"""The publisher's task. Thin: everything is in publish.py."""

from functools import cache

from celery import shared_task

from controlplane.lookups.publish import LookupPublisher
from controlplane.settings import control_settings


@cache
def publisher() -> LookupPublisher:
    """This process's publisher; its clients are made at the first tick, never before a fork."""
    return LookupPublisher(control_settings().kafka)


@shared_task(name="lookups.publish")
def publish() -> str:
    """Bring changed look-up tables to their topic.

    Safe to run twice, at once, and to be killed anywhere: an advisory lock lets one at a time work, what was sent is
    marked only after its reports, and what is sent again changes nothing for readers.
    """
    return publisher().tick()
