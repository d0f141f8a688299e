"""A control plane that does nothing says so: in an incident, on pages, in `explain`; one that works does not."""

from datetime import datetime, timedelta
from io import StringIO

import pytest
from django.core import mail
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from controlplane.locks import alone
from controlplane.observer.incidents import SILENT, watch_incidents, watch_silence
from mgmt.models import Incident, Pipe, Tick, User
from mgmt.queries.ticks import PATIENCE, is_silent, silent
from mgmt.schedule import EVERY_S, PROVISION
from tests.db.console.truth import BrowserOf

pytestmark = pytest.mark.django_db
NOW = timezone.now()
LATER = NOW + PATIENCE + timedelta(seconds=1)


def all_done(at: datetime = NOW) -> None:
    Tick.objects.all().delete()
    Tick.objects.bulk_create(Tick(task=task, at=at) for task in EVERY_S)


def test_a_task_that_was_done_leaves_word_and_one_that_failed_does_not():
    def fails() -> str:
        raise ValueError("no")

    assert alone(PROVISION, lambda: "Place") == "Place"
    with pytest.raises(ValueError, match="no"):
        alone("deployer.tick", fails)
    (row,) = Tick.objects.all()
    assert (row.task, row.said) == (PROVISION, "Place")
    alone(PROVISION, lambda: "nothing to do")
    assert Tick.objects.get().at > row.at


def test_silence_counts_by_each_tasks_own_period():
    all_done()
    assert silent(NOW + PATIENCE) == []
    assert {one.task for one in silent(LATER)} == set(EVERY_S) - {"observer.watch_patterns"}
    assert {one.task for one in silent(NOW + timedelta(seconds=61))} == set(EVERY_S)


def test_what_was_never_done_counts_for_those_who_have_watched_long_enough():
    assert silent(LATER) == []
    assert not is_silent(PROVISION, LATER)
    assert PROVISION in {one.task for one in silent(LATER, watched_since=NOW)}
    all_done()
    assert silent(LATER, watched_since=LATER) == [], "whoever begins to watch gives it time"


def test_silence_is_one_incident_told_once_until_it_is_over(settings: Settings):
    settings.PENSTOCK_OPERATOR_MAIL = "ops@example.com"
    all_done()
    assert not watch_silence(NOW, NOW)
    assert watch_silence(LATER, NOW)
    assert not watch_silence(LATER, NOW)
    watch_incidents(LATER)
    incident = Incident.objects.get()
    assert (incident.cause, incident.resolved_at, len(mail.outbox)) == (SILENT, None, 1)
    assert "Redis, beat and the workers" in mail.outbox[0].body
    all_done(LATER)
    watch_silence(LATER, NOW)
    assert Incident.objects.get().resolved_at == LATER


def test_staff_and_the_pipes_owner_see_it_and_explain_says_it(pipe: Pipe, alice: User, browser_of: BrowserOf):
    staff, owner = browser_of(User.objects.create_superuser("admin")), browser_of(alice)

    def seen() -> list[bool]:
        out = StringIO()
        call_command("explain", pipe.name, stdout=out)
        return [
            "The control plane does nothing" in staff.get("/staff/").content.decode(),
            "Our control plane is behind" in owner.get(f"/pipes/{pipe.id}/").content.decode(),
            "look at Redis, beat and the workers" in out.getvalue(),
        ]

    all_done(timezone.now())
    assert seen() == [False] * 3
    all_done(timezone.now() - timedelta(hours=1))
    assert seen() == [True] * 3


def test_a_pipe_that_waits_for_nothing_says_nothing_of_it(pipe: Pipe, alice: User, browser_of: BrowserOf):
    pipe.revisions.update(state="live")
    all_done(timezone.now() - timedelta(hours=1))
    answer: Client = browser_of(alice)
    assert "control plane" not in answer.get(f"/pipes/{pipe.id}/").content.decode()
