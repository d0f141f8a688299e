"""A stalled control plane is reported in an incident, on pages and in `explain`; a working one is not."""

from datetime import datetime, timedelta
from io import StringIO

import pytest
from django.core import mail
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from controlplane.locks import TaskWaitingError, alone
from controlplane.observer.incidents import SILENT, watch_incidents, watch_silence
from mgmt.cells.queries.overdue_tasks import PATIENCE, is_overdue, overdue_tasks
from mgmt.cells.schedule import EVERY_S, PROVISION
from mgmt.models import Incident, Pipe, TaskRun, User
from tests.db.console.truth import BrowserOf

pytestmark = pytest.mark.django_db
NOW = timezone.now()
LATER = NOW + PATIENCE + timedelta(seconds=1)


def all_done(at: datetime = NOW) -> None:
    TaskRun.objects.all().delete()
    TaskRun.objects.bulk_create(TaskRun(task=task, at=at) for task in EVERY_S)


def test_successful_task_records_its_run_and_a_failed_task_does_not():
    def fails() -> str:
        raise ValueError("no")

    assert alone(PROVISION, lambda: "Place") == "Place"
    with pytest.raises(ValueError, match="no"):
        alone("deployer.tick", fails)
    (row,) = TaskRun.objects.all()
    assert (row.task, row.said) == (PROVISION, "Place")
    alone(PROVISION, lambda: "nothing to do")
    assert TaskRun.objects.get().at > row.at


def test_run_has_a_typed_outcome_and_the_time_since_when_it_lasts():
    def fails() -> str:
        raise ValueError("a secret")

    def waits() -> str:
        raise TaskWaitingError("waiting for Kafka")

    def stored() -> tuple[str, str, bool]:
        row = TaskRun.objects.get()
        return row.outcome, row.said, row.since < row.at

    assert alone(PROVISION, lambda: "") == "nothing to do"
    assert stored()[:2] == ("nothing", "nothing to do")
    alone(PROVISION, lambda: "")
    assert stored() == ("nothing", "nothing to do", True), "the outcome lasts since the first of the two runs"
    assert alone(PROVISION, waits) == "waiting for Kafka"
    assert stored()[:2] == ("waiting", "waiting for Kafka")
    alone(PROVISION, lambda: "Place")
    before = TaskRun.objects.get()
    assert (before.outcome, before.said) == ("changed", "Place")
    for _ in range(2):
        with pytest.raises(ValueError, match="a secret"):
            alone(PROVISION, fails)
    after = TaskRun.objects.get()
    assert (after.outcome, after.said, after.at) == ("failed", "ValueError", before.at), (
        "it is overdue if it only fails"
    )
    assert after.since > before.since


def test_task_is_overdue_by_its_own_period():
    all_done()
    assert overdue_tasks(NOW + PATIENCE) == []
    slow = {
        "observer.keep_rollups",
        "observer.watch_destinations",
        "observer.watch_kafka",
        "observer.watch_patterns",
    }
    assert {one.task for one in overdue_tasks(LATER)} == set(EVERY_S) - slow
    assert {one.task for one in overdue_tasks(NOW + timedelta(seconds=61))} == set(EVERY_S)


def test_task_that_never_ran_is_overdue_after_a_long_enough_watch():
    assert overdue_tasks(LATER) == []
    assert not is_overdue(PROVISION, LATER)
    assert PROVISION in {one.task for one in overdue_tasks(LATER, watched_since=NOW)}
    all_done()
    assert overdue_tasks(LATER, watched_since=LATER) == [], "a new watcher first allows for the grace period"


def test_stalled_control_plane_opens_one_incident_and_one_mail_until_it_recovers(settings: Settings):
    settings.PENSTOCK_OPERATOR_MAIL = "ops@example.com"
    all_done()
    assert not watch_silence(NOW, NOW)
    assert watch_silence(LATER, NOW)
    assert not watch_silence(LATER, NOW)
    watch_incidents(LATER)
    incident = Incident.objects.get()
    assert (incident.cause, incident.resolved_at, len(mail.outbox)) == (SILENT, None, 1)
    assert "Redis, Celery beat and the workers" in mail.outbox[0].body
    all_done(LATER)
    watch_silence(LATER, NOW)
    assert Incident.objects.get().resolved_at == LATER


def test_staff_owner_and_explain_report_the_stalled_control_plane(pipe: Pipe, alice: User, browser_of: BrowserOf):
    staff, owner = browser_of(User.objects.create_superuser("admin")), browser_of(alice)

    def seen() -> list[bool]:
        out = StringIO()
        call_command("explain", pipe.name, stdout=out)
        return [
            "The control plane is stalled" in staff.get("/staff/").content.decode(),
            "Our control plane is delayed" in owner.get(f"/pipes/{pipe.id}/").content.decode(),
            "check Redis, beat and the workers" in out.getvalue(),
        ]

    all_done(timezone.now())
    assert seen() == [False] * 3
    all_done(timezone.now() - timedelta(hours=1))
    assert seen() == [True] * 3


def test_pipe_that_waits_for_nothing_shows_no_stall(pipe: Pipe, alice: User, browser_of: BrowserOf):
    pipe.revisions.update(state="live")
    all_done(timezone.now() - timedelta(hours=1))
    answer: Client = browser_of(alice)
    assert "control plane" not in answer.get(f"/pipes/{pipe.id}/").content.decode()
