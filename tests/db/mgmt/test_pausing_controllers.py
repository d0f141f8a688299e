"""Admins pause controllers: with a reason, for a while or until ended, each once; what was done stays written."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, transaction

from mgmt.models import Cell, ControlAction, Pause, User
from mgmt.services import InvalidValue, PausedAlready, end_pause, pause_controller

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def pause(by: User, *, cell: Cell | None = None, until: datetime | None = None, now: datetime = NOW) -> Pause:
    return pause_controller(controller="provision", cell=cell, reason="audit", until=until, by=by, now=now)


def test_a_pause_and_its_end_are_in_the_audit_with_their_author(alice: User, bob: User):
    assert end_pause(pause=pause(alice), by=bob, now=NOW + HOUR)
    done = ControlAction.objects.order_by("id").values_list("controller", "action", "reason", "author__username")
    assert list(done) == [
        ("person", "pause-provision", "audit", "alice"),
        ("person", "resume-provision", "audit", "bob"),
    ]
    row = Pause.objects.get()
    assert (row.ended_at, row.ended_by) == (NOW + HOUR, bob)


def test_one_open_pause_is_enough_everywhere_and_on_each_cell(alice: User):
    cell = Cell.objects.create(id="c1")
    pause(alice)
    pause(alice, cell=cell)
    for where in (None, cell):
        with pytest.raises(PausedAlready, match="provisioning is paused there already"):
            pause(alice, cell=where)


def test_a_pause_whose_time_is_over_gives_way_to_a_new_one_and_is_ended_by_nobody(alice: User):
    first = pause(alice, until=NOW + HOUR)
    assert not end_pause(pause=first, by=alice, now=NOW + HOUR)
    pause(alice, now=NOW + 2 * HOUR)
    first.refresh_from_db()
    assert (first.ended_at, first.ended_by) == (NOW + HOUR, None)


def test_ending_twice_is_ending_once(alice: User):
    row = pause(alice)
    assert [end_pause(pause=row, by=alice, now=NOW) for _ in range(2)] == [True, False]
    assert ControlAction.objects.count() == 2


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"reason": " "}, "reason"),
        ({"reason": "x" * 201}, "reason"),
        ({"until": NOW}, "until"),
        ({"controller": "observe"}, "controller"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_field(alice: User, changed: dict[str, object], field: str):
    asked = {"controller": "scale", "cell": None, "reason": "audit", "until": None, "by": alice, "now": NOW} | changed
    with pytest.raises(InvalidValue) as refused:
        pause_controller(**asked)  # type: ignore[arg-type]
    assert refused.value.field == field
    assert not Pause.objects.exists()


def test_what_was_done_is_neither_changed_nor_deleted(alice: User):
    pause(alice)
    for deed in (lambda: ControlAction.objects.update(reason="no"), lambda: ControlAction.objects.all().delete()):
        with pytest.raises(IntegrityError, match="control_action_is_kept"), transaction.atomic():
            deed()
