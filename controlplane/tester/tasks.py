"""The task that has test requests sent. It waits for no answer: a thread of this process does."""

import threading
from datetime import UTC, datetime
from functools import cache

import structlog
from celery import shared_task
from django.db import DatabaseError, connection

from controlplane.locks import alone
from controlplane.tester.send import anything_asked, give_up_on_lost, send_asked

LOCK = "tester.send"
log = structlog.get_logger(__name__)


class SendingThread:
    """One process's sending thread; it lives while there is something to send."""

    def __init__(self) -> None:
        self.thread: threading.Thread | None = None

    def tick(self) -> str:
        """See that what is asked for is being sent. Returns what was done, in words."""
        return alone(LOCK, self._run)

    def _run(self) -> str:
        lost = give_up_on_lost(datetime.now(UTC))
        said = f"given up on {lost}" if lost else "nothing to do"
        if not anything_asked() or (self.thread is not None and self.thread.is_alive()):
            return said
        self.thread = threading.Thread(target=_send, name="tester", daemon=True)
        self.thread.start()
        return "sending"


def _send() -> None:
    try:
        send_asked()
    except DatabaseError as exc:
        log.warning("test requests cut short", reason=str(exc))
    finally:
        connection.close()


@cache
def sending() -> SendingThread:
    """This process's."""
    return SendingThread()


@shared_task(name="tester.send")
def send() -> str:
    """Have the test requests sent that are asked for.

    Safe to run twice and to be killed anywhere: a row is claimed by a conditional update, and one whose sender died
    is ended as failed after half a minute. It is never sent again by itself.
    """
    return sending().tick()
