"""The Observer's Celery tasks: what follows from its rows as time goes on, and needs no reading of Kafka."""

from datetime import UTC, datetime

from celery import shared_task

from controlplane.locks import alone
from controlplane.observer.confirmations import send_confirmations
from controlplane.observer.digest import send_digests
from controlplane.observer.incidents import watch_incidents
from controlplane.observer.judging import judge_cells
from controlplane.observer.long_held import warn_of_long_held
from controlplane.observer.notices import send_due
from controlplane.observer.patterns import watch_patterns
from controlplane.settings import control_settings
from mgmt.services.alerts import resolve_what_is_well, resolve_what_was_released, wake_snoozed
from mgmt.services.moves import release_leftovers
from mgmt.services.pipes import resume_complete_pipes
from mgmt.services.probes import judge_probes

LOCK = "observer.tend"
PATTERNS_LOCK = "observer.watch_patterns"


@shared_task(name="observer.tend")
def tend() -> str:
    """Judge cells and probes, release what is held no more, resolve, wake and tell alerts.

    Safe to run twice and to be killed anywhere: places are taken and rows moved by conditional updates and locks of
    their rows, notices are claimed before they are sent. Overlapping runs skip, by a lock that dies with its holder.
    """
    return alone(LOCK, _tend)


@shared_task(name="observer.watch_patterns")
def watch() -> str:
    """Look for unusual patterns in the blocks that have ended since.

    Safe to run twice and to be killed anywhere: a pipe keeps each of its blocks once. Overlapping runs skip.
    """
    return alone(PATTERNS_LOCK, _watch)


def _watch() -> str:
    told = watch_patterns(datetime.now(UTC), control_settings().grace_s)
    return f"told {told}" if told else "nothing unusual"


def _tend() -> str:
    now = datetime.now(UTC)
    done = {
        "verdicts": judge_cells(now),
        "resumed": resume_complete_pipes(now=now),
        "released": release_leftovers(),
        "judged": judge_probes(now=now),
        "resolved": resolve_what_was_released(now=now) + resolve_what_is_well(now=now),
        "woken": wake_snoozed(now=now),
        "long held": warn_of_long_held(now, control_settings().ends_keep),
        "incidents": watch_incidents(now),
        "told": send_due(now),
        "digests": send_digests(now),
        "confirmations": send_confirmations(now),
    }
    return ", ".join(f"{name} {count}" for name, count in done.items() if count) or "nothing to do"
