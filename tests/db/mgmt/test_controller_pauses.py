"""Admins pause controllers: with a reason, for a while or until ended, each once, with a permanent audit."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, transaction

from mgmt.models import Cell, ControlAction, Pause, User
from mgmt.services import AlreadyPausedError, InvalidValue, pause_controller, resume_controller

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def pause(by: User, *, cell: Cell | None = None, until: datetime | None = None, now: datetime = NOW) -> Pause:
    return pause_controller(controller="provision", cell=cell, reason="audit", until=until, by=by, now=now)


def test_pause_and_its_end_are_in_the_audit_with_their_author(alice: User, bob: User):
    assert resume_controller(pause=pause(alice), by=bob, now=NOW + HOUR)
    done = ControlAction.objects.order_by("id").values_list("controller", "action", "reason", "author__username")
    assert list(done) == [
        ("person", "pause-provision", "audit", "alice"),
        ("person", "resume-provision", "audit", "bob"),
    ]
    row = Pause.objects.get()
    assert (row.ended_at, row.ended_by) == (NOW + HOUR, bob)


def test_second_open_pause_is_refused_globally_and_per_cell(alice: User):
    cell = Cell.objects.create(id="c1")
    pause(alice)
    pause(alice, cell=cell)
    for where in (None, cell):
        with pytest.raises(AlreadyPausedError, match="provisioning is already paused there"):
            pause(alice, cell=where)


def test_expired_pause_permits_a_new_one_and_is_ended_by_no_user(alice: User):
    first = pause(alice, until=NOW + HOUR)
    assert not resume_controller(pause=first, by=alice, now=NOW + HOUR)
    pause(alice, now=NOW + 2 * HOUR)
    first.refresh_from_db()
    assert (first.ended_at, first.ended_by) == (NOW + HOUR, None)


def test_ending_a_pause_twice_ends_it_once(alice: User):
    row = pause(alice)
    assert [resume_controller(pause=row, by=alice, now=NOW) for _ in range(2)] == [True, False]
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
def test_invalid_pause_is_refused_naming_its_field(alice: User, changed: dict[str, object], field: str):
    asked = {"controller": "scale", "cell": None, "reason": "audit", "until": None, "by": alice, "now": NOW} | changed
    with pytest.raises(InvalidValue) as refused:
        pause_controller(**asked)  # type: ignore[arg-type]
    assert refused.value.field == field
    assert not Pause.objects.exists()


def test_audit_rows_cannot_be_changed_or_deleted(alice: User):
    pause(alice)
    for action in (lambda: ControlAction.objects.update(reason="no"), lambda: ControlAction.objects.all().delete()):
        with pytest.raises(IntegrityError, match="control_action_is_kept"), transaction.atomic():
            action()
