"""Celery task of the publisher of operational events; the logic is in publish.py."""

from celery import shared_task

from controlplane.operational_events.publish import publish_due
from controlplane.settings import control_settings


@shared_task(name="operational_events.publish")
def publish() -> str:
    """Publish operational events.

    Safe to run twice, also concurrently, and to kill at any point: a lock lets one run at a time work, and an event
    that is published again has the same id.
    """
    return publish_due(control_settings().kafka)
