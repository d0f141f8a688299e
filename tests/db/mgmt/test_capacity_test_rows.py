"""Rows of a capacity test: a pipe on the tested cell, a pause that ends, and nothing left behind."""

from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction

from mgmt.cells.queries.control import open_pauses
from mgmt.cells.services.capacity_tests import (
    RATER,
    begin_capacity_test,
    capacity_test_pipe,
    capacity_test_url,
    end_capacity_test,
    store_capacity_results,
)
from mgmt.models import ApiKey, CapacityResult, Cell, Controller, Pause, Pipe, PipeRevision, User
from mgmt.services import AlreadyPausedError, pause_controller

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
URL = "http://127.0.0.1:9101/"
RATED = {"group": "process", "units": 2, "per_s": 3_000.0, "at_least": True, "cpu_us": 60.0}


@pytest.fixture
def cell() -> Cell:
    Cell.objects.create(id="c1")
    return Cell.objects.create(id="c2")


def opened(cell: Cell, url: str = URL, now: datetime = NOW) -> tuple[Pipe, str]:
    return begin_capacity_test(cell=cell, url=url, reason="measured", until=now + timedelta(minutes=5), now=now)


def test_capacity_test_gets_a_pipe_on_its_cell_whose_scaling_is_paused_for_a_limited_time(cell: Cell):
    pipe, key = opened(cell)
    pipe.refresh_from_db()
    assert pipe.cell_id == "c2"
    assert key.startswith("psk_")
    pause = open_pauses(NOW).get()
    assert (pause.controller, pause.cell_id, pause.by.username, pause.reason) == ("scale", "c2", RATER, "measured")
    assert pause.until == NOW + timedelta(minutes=5)
    assert not pause.by.has_usable_password()
    assert not pause.by.is_staff


def test_end_closes_the_pipe_revokes_the_key_and_resumes_scaling(cell: Cell):
    pipe, _ = opened(cell)
    for _ in range(2):
        end_capacity_test(cell=cell, now=NOW)
    pipe.refresh_from_db()
    assert pipe.state == Pipe.State.CLOSED
    assert not ApiKey.objects.filter(revoked_at=None).exists()
    assert not open_pauses(NOW).exists()


def test_next_run_uses_the_same_pipe_and_ends_the_leftovers_of_a_killed_run(cell: Cell):
    pipe, _ = opened(cell)
    again, _ = opened(cell, now=NOW + timedelta(minutes=1))
    assert again == pipe
    assert again.state == Pipe.State.ACTIVE
    assert again.revisions.count() == 1
    assert ApiKey.objects.filter(revoked_at=None).count() == 1
    assert open_pauses(NOW).count() == 1


def test_new_receiver_and_failed_revision_each_lead_to_a_new_revision(cell: Cell):
    pipe, _ = opened(cell)
    opened(cell, URL.replace("9101", "9102"))
    assert capacity_test_url(pipe) == "http://127.0.0.1:9102/"
    PipeRevision.objects.filter(number=2).update(state=PipeRevision.State.FAILED)
    opened(cell, URL.replace("9101", "9102"))
    assert pipe.revisions.count() == 3


def test_persons_pause_is_kept_and_nothing_is_created(cell: Cell, alice: User):
    pause_controller(controller=Controller.SCALE, cell=cell, reason="mine", until=None, by=alice, now=NOW)
    with pytest.raises(AlreadyPausedError):
        opened(cell)
    end_capacity_test(cell=cell, now=NOW)
    assert Pause.objects.get(ended_at=None).by == alice
    assert capacity_test_pipe(cell) is None


def test_result_is_stored_with_its_release_and_author(cell: Cell, alice: User):
    common: dict[str, Any] = {"cell": cell, "master": "local[2]", "bottleneck": "x" * 400, "batch": 1, "now": NOW}
    store_capacity_results(rated=[RATED], by=alice, **common)
    row = CapacityResult.objects.get()
    assert (row.group, row.units, row.per_s, row.at_least, row.by, len(row.bottleneck)) == (
        "process", 2, 3_000.0, True, alice, 300,
    )  # fmt: skip
    store_capacity_results(rated=[RATED], by=None, **common | {"now": NOW + timedelta(hours=1)})
    assert CapacityResult.objects.latest("at").by.username == RATER


@pytest.mark.parametrize("wrong", [{"per_s": 0.0}, {"units": 0}])
def test_result_without_throughput_or_units_is_refused(cell: Cell, alice: User, wrong: dict[str, Any]):
    with pytest.raises(IntegrityError), transaction.atomic():
        store_capacity_results(
            cell=cell, master="local[2]", rated=[RATED | wrong], bottleneck="", batch=1, by=alice, now=NOW
        )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--cell", "c9"], "cell 'c9' does not exist"),
        (["--by", "alice"], "there is no staff user 'alice'"),
        (["--most", "0"], "needs more than 0"),
        (["--hold", "long"], "needs a number"),
    ],
)
def test_command_reports_invalid_arguments(cell: Cell, alice: User, words: list[str], says: str):
    with pytest.raises(CommandError, match=says):
        call_command("rate_traffic", *words, stderr=StringIO())
