"""Celery task that starts the sending of test requests; a thread of this process waits for the responses."""

import threading
from datetime import UTC, datetime
from functools import cache

import structlog
from celery import shared_task
from django.db import DatabaseError, connection

from controlplane.delivery_test.send import give_up_on_lost, has_requests, send_requested
from controlplane.locks import alone

LOCK = "tester.send"
log = structlog.get_logger(__name__)


class SendingThread:
    """Sending thread of this process, which runs while there are test requests to send."""

    def __init__(self) -> None:
        self.thread: threading.Thread | None = None

    def tick(self) -> str:
        """Start the thread if test requests wait, under the lock; return a summary of the work done."""
        return alone(LOCK, self._run)

    def _run(self) -> str:
        lost = give_up_on_lost(datetime.now(UTC))
        summary = f"given up on {lost}" if lost else ""
        if not has_requests() or (self.thread is not None and self.thread.is_alive()):
            return summary
        self.thread = threading.Thread(target=_send, name="tester", daemon=True)
        self.thread.start()
        return "sending"


def _send() -> None:
    try:
        send_requested()
    except DatabaseError as exc:
        log.warning("test requests interrupted", reason=str(exc))
    finally:
        connection.close()


@cache
def sending() -> SendingThread:
    """Return the SendingThread of this process."""
    return SendingThread()


@shared_task(name="tester.send")
def send() -> str:
    """Send the test requests that wait.

    Safe to run twice and to kill at any point: a conditional update claims a row, and a row whose sender crashed ends
    as failed after half a minute. It is never sent again automatically.
    """
    return sending().tick()
