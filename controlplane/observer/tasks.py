"""The Observer's Celery tasks: periodic work on its rows, and the check of Kafka's brokers."""

from collections.abc import Mapping
from datetime import UTC, datetime

from celery import shared_task

from controlplane.kafka import kafka_clients
from controlplane.locks import alone
from controlplane.observer.brokers import check_kafka
from controlplane.observer.channel_tests import send_channel_tests
from controlplane.observer.common_fields import watch_common_fields
from controlplane.observer.confirmations import send_confirmations
from controlplane.observer.digest import send_digests
from controlplane.observer.health import watch_destinations
from controlplane.observer.hot_partitions import watch_partitions
from controlplane.observer.incidents import send_incident_mails, watch_incidents
from controlplane.observer.judging import judge_cells
from controlplane.observer.long_held import warn_of_long_held
from controlplane.observer.notices import send_due
from controlplane.observer.patterns import watch_patterns
from controlplane.observer.rejecting import watch_rejections
from controlplane.observer.rollups import keep_rollups
from controlplane.observer.sequence_gaps import SequenceGapPolicy, watch_sequence_gaps
from controlplane.settings import control_settings
from mgmt.alerts.hot_partitions import HotPartitionPolicy
from mgmt.alerts.rejecting import RejectingPolicy
from mgmt.alerts.services.alerts import resolve_recovered, resolve_released, wake_snoozed
from mgmt.alerts.services.losses import resolve_found_losses
from mgmt.alerts.services.probes import judge_probes
from mgmt.deliveries.services.redrives import release_leftovers
from mgmt.pipes.services.pipes import resume_complete_pipes
from mgmt.replays.services.backfills import start_backfills
from mgmt.replays.services.progress import abort_forgotten, end_unanswered, store_results
from mgmt.shadows.services.progress import end_unanswered_shadows, stop_unattended_shadows

LOCK = "observer.tend"
NOTIFY_LOCK = "observer.notify"
CHANNEL_TESTS_LOCK = "observer.test_channels"
PATTERNS_LOCK = "observer.watch_patterns"
DESTINATIONS_LOCK = "observer.watch_destinations"
KAFKA_LOCK = "observer.watch_kafka"
ROLLUPS_LOCK = "observer.keep_rollups"


@shared_task(name="observer.tend")
def tend() -> str:
    """Judge cells and probes, release messages no longer held, resolve and wake alerts, and end and start runs.

    Safe to run twice and to kill at any point: offsets are taken and rows changed by conditional updates and row locks.
    Overlapping runs skip, by a lock that Postgres frees if its holder crashes.
    """
    return alone(LOCK, _tend)


@shared_task(name="observer.notify")
def notify() -> str:
    """Send notices, digests, confirmations and mails about incidents.

    Apart from `tend`, which must not wait for slow receivers.

    Safe to run twice and to kill at any point: each is claimed by a conditional update before it is sent. Overlapping
    runs skip.
    """
    return alone(NOTIFY_LOCK, _notify)


@shared_task(name="observer.test_channels")
def test_channels() -> str:
    """Send the requested test messages of notification channels. Apart from `notify`: no alert waits for them.

    Safe to run twice and to kill at any point: each is claimed by a conditional update before it is sent. Overlapping
    runs skip.
    """
    return alone(CHANNEL_TESTS_LOCK, _test_channels)


def _test_channels() -> str:
    return _summary({"channel tests": send_channel_tests(datetime.now(UTC))})


@shared_task(name="observer.watch_patterns")
def watch() -> str:
    """Look for unusual patterns in the blocks that have ended since the last run.

    Safe to run twice and to kill at any point: a pipe stores each of its blocks once. Overlapping runs skip.
    """
    return alone(PATTERNS_LOCK, _watch)


@shared_task(name="observer.watch_destinations")
def check_destinations() -> str:
    """Check destinations that fail or are behind, losses that may be found, hot partitions and rejected events.

    Safe to run twice and to kill at any point: each state is stored with the time since which it holds.
    Overlapping runs skip.
    """
    return alone(DESTINATIONS_LOCK, _check_destinations)


@shared_task(name="observer.watch_kafka")
def watch_kafka() -> str:
    """Store which of Kafka's brokers respond, and how many partitions lack a leader or a replica.

    Safe to run twice and to kill at any point: a state is stored with the time since which it lasts. Overlapping runs
    skip.
    """
    return alone(KAFKA_LOCK, _watch_kafka)


def _watch_kafka() -> str:
    return check_kafka(kafka_clients(control_settings().kafka), datetime.now(UTC))


@shared_task(name="observer.keep_rollups")
def roll_up() -> str:
    """Add up the blocks of minutes that have ended, and those that got late facts.

    Safe to run twice and to kill at any point: a block becomes final by a conditional update. Overlapping runs skip.
    """
    return alone(ROLLUPS_LOCK, _roll_up)


def _roll_up() -> str:
    return _summary({"blocks": keep_rollups(datetime.now(UTC), control_settings().grace_s)})


def _check_destinations() -> str:
    now = datetime.now(UTC)
    return _summary(
        {
            "failing": watch_destinations(now, control_settings().health),
            "found": resolve_found_losses(now=now),
            "hot": watch_partitions(now, HotPartitionPolicy()),
            "rejecting": watch_rejections(now, RejectingPolicy()),
            "missing": watch_sequence_gaps(now, SequenceGapPolicy()),
        }
    )


def _watch() -> str:
    findings = watch_patterns(datetime.now(UTC), control_settings().grace_s)
    return f"findings {findings}" if findings else ""


def _tend() -> str:
    now = datetime.now(UTC)
    done = {
        "verdicts": judge_cells(now),
        "resumed": resume_complete_pipes(now=now),
        "released": release_leftovers(),
        "judged": judge_probes(now=now),
        "resolved": resolve_released(now=now) + resolve_recovered(now=now),
        "woken": wake_snoozed(now=now),
        "long held": warn_of_long_held(now, control_settings().ends_keep),
        "common fields": watch_common_fields(now),
        "incidents": watch_incidents(now),
        "forgotten replays": abort_forgotten(now=now),
        "aborted replays": end_unanswered(now=now),
        "replay results": store_results(now=now),
        "unattended shadow runs": stop_unattended_shadows(now=now),
        "stopped shadow runs": end_unanswered_shadows(now=now),
        "backfills": start_backfills(now=now),
    }
    return _summary(done)


def _notify() -> str:
    now = datetime.now(UTC)
    done = {
        "notices": send_due(now),
        "incidents": send_incident_mails(now),
        "digests": send_digests(now),
        "confirmations": send_confirmations(now),
    }
    return _summary(done)


def _summary(done: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in done.items() if count)
