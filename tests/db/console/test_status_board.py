"""Status board for staff: what is broken, since when, who is affected, what to do; and causes that tenants share."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries

from controlplane.leases import acquire
from mgmt.alerts.services.alerts import AlertReport, FailureGroup, note_failures, report_condition
from mgmt.cells.queries.board import board
from mgmt.cells.schedule import EVERY_S
from mgmt.cells.services.control import note
from mgmt.models import (
    Alert,
    Cell,
    CellVerdict,
    ControlAction,
    Destination,
    DestinationHealth,
    Heartbeat,
    Incident,
    KafkaCheck,
    Membership,
    Pipe,
    ScaleGroup,
    ScaleSample,
    TaskRun,
    Tenant,
    User,
)
from mgmt.services import create_pipe, create_tenant, pause_controller
from tests.db.cast import MakeSpec
from tests.db.console.truth import BrowserOf, go_live, plain

pytestmark = pytest.mark.django_db
BOARD = 35
ANSWER = '503\n{"error": "upstream 17 is down"}'
PipeOf = Callable[..., Pipe]


@pytest.fixture
def root() -> User:
    return User.objects.create_superuser("admin")


@pytest.fixture
def admin(browser_of: BrowserOf, root: User) -> Client:
    return browser_of(root)


@pytest.fixture
def pipe_of(a_spec: MakeSpec) -> PipeOf:
    """Factory of pipes of new tenants that deliver to one host."""

    def make(name: str, url: str = "https://api.example.com/in") -> Pipe:
        owner = User.objects.create_user(f"owner-{name}")
        tenant = create_tenant(name=f"Tenant {name}", owner=owner)
        pipe = create_pipe(tenant=tenant, name=f"pipe-{name}", spec=a_spec(crm=url), author=owner)
        go_live(pipe)
        return pipe

    return make


def fails(pipe: Pipe, at: datetime, *, answer: str = ANSWER, cause: str = "server-error", status: int = 503) -> Alert:
    sample = {"answer": answer, "status": status, "message_id": "m", "position": "1-0-7"}
    failure = FailureGroup(pipe.id, "crm", cause, 3, at, sample, status=status, fingerprint="abc" if answer else "")
    note_failures(failures=[failure], now=at)
    return Alert.objects.get(pipe=pipe, cause=cause)


def section(page: str, title: str) -> str:
    """Return the text of one section of the board."""
    return plain(page.split(f'id="{title}-title"')[1].split("</section>", maxsplit=1)[0])


def all_ran(now: datetime) -> None:
    TaskRun.objects.bulk_create(TaskRun(task=task, at=now, since=now) for task in EVERY_S)


def unstable(now: datetime, cell: str = "c1", **more: Any) -> None:
    Cell.objects.get_or_create(id=cell)
    found = {"reasons": ["process-0 has sent no heartbeat"], "kinds": ["silent"]} | more
    CellVerdict.objects.create(cell_id=cell, state="unstable", since=now - timedelta(minutes=42), at=now, **found)


def test_board_of_a_healthy_box_says_that_nothing_is_broken(admin: Client):
    all_ran(timezone.now())
    page = admin.get("/staff/board/").text
    assert "Nothing is broken on our side." in page
    assert "No destination fails in the same way for two tenants or more." in page
    assert "none waits" in page


def test_unstable_cell_shows_reason_start_tenants_pipes_and_next_step(admin: Client, pipe_of: PipeOf):
    for name in ("a", "b"):
        pipe_of(name)
    Pipe.objects.filter(id=pipe_of("elsewhere").id).update(cell=Cell.objects.create(id="c9"))
    unstable(timezone.now())
    found = section(admin.get("/staff/board/").text, "problems")
    assert "Cell c1 is unstable: process-0 has sent no heartbeat" in found
    assert "42min" in found.replace(" ", "")
    assert "2 tenants, 2 pipes" in found
    assert "Read the driver's log." in found
    assert 'href="/staff/cells/c1/"' in admin.get("/staff/board/").text


def test_failed_task_stalled_control_plane_and_incident_are_problems(admin: Client):
    now = timezone.now()
    all_ran(now)
    TaskRun.objects.filter(task="deployer.tick").update(outcome="failed", said="ValueError")
    TaskRun.objects.filter(task="autoscaler.tick").update(at=now - timedelta(minutes=9))
    Incident.objects.create(cause="timeout", tenants=5, opened_at=now)
    Incident.objects.create(cause="lane-blocked", tenants=5, opened_at=now)
    found = section(admin.get("/staff/board/").text, "problems")
    assert "Deployer.tick fails: ValueError" in found
    assert "Autoscaler.tick has not run" in found
    assert "5 tenants have alerts with one cause" in found
    assert found.count("5 tenants have alerts") == 1, "a blocked lane is shown by the verdict on its cell"


def test_unreachable_brokers_affect_everyone_and_are_listed(admin: Client, pipe_of: PipeOf):
    pipe_of("a")
    now = timezone.now()
    brokers = [
        {"id": 1, "address": "kafka-1:9092", "alive": True},
        {"id": 2, "address": "kafka-2:9092", "alive": False},
    ]
    row = KafkaCheck.objects.create(
        cluster="main", at=now, since=now, state="degraded", brokers=brokers, partitions=40, under_replicated=7,
        leaderless=2, examples=["penstock.c1.ingest.g1/3"],
    )  # fmt: skip
    page = admin.get("/staff/board/").text
    assert "Broker kafka-2:9092 is missing; 2 partitions have no leader; 7 partitions are under-replicated" in section(
        page, "problems"
    )
    assert "kafka-2:9092 missing" in section(page, "kafka")
    assert "penstock.c1.ingest.g1/3" in section(page, "kafka")
    row.state, row.error = "unreachable", "timed out"
    row.save()
    assert "No broker responds: timed out" in section(admin.get("/staff/board/").text, "problems")


def beat(kind: str, writer: str, at: datetime, state: str = "running") -> None:
    Heartbeat.objects.create(
        cell="", writer=writer, kind=kind, epoch=1, table_offset=0, at=at, state=state, body={"detail": ""}
    )


def problems_of(admin: Client) -> str:
    return section(admin.get("/staff/board/").text, "problems")


def test_missing_ingest_replica_is_a_problem(admin: Client):
    Cell.with_ingest.create(id="ingest", lanes={"ingest": 2})
    beat("driver", "driver", timezone.now())
    assert "0 of 2 ingest replicas run" in problems_of(admin)


def test_ingest_replicas_are_not_missing_if_no_heartbeat_is_stored(admin: Client):
    """The Observer is down then: ingest may be fine, and this problem would be shown above the real one."""
    Cell.with_ingest.create(id="ingest", lanes={"ingest": 2})
    beat("driver", "driver", timezone.now() - timedelta(minutes=1))
    assert "ingest replicas run" not in problems_of(admin)


def test_dead_replica_is_a_problem_if_no_autoscaler_sets_their_number(admin: Client):
    now = timezone.now()
    beat("ingest", "ingest-1", now)
    beat("ingest", "ingest-2", now - timedelta(minutes=5), state="drained")
    assert "ingest replicas run" not in problems_of(admin)
    beat("ingest", "ingest-3", now - timedelta(minutes=5))
    assert "1 of 2 ingest replicas run" in problems_of(admin)
    Heartbeat.objects.filter(kind="ingest").update(at=now - timedelta(days=1))
    beat("driver", "driver", now)
    assert "0 of 1 ingest replicas run" in problems_of(admin)


def test_one_failure_of_several_tenants_is_one_row_with_links_to_their_alerts(
    admin: Client, root: User, pipe_of: PipeOf
):
    now = timezone.now()
    pipes = [pipe_of(name) for name in ("a", "b", "c")]
    alerts = [fails(pipe, now - timedelta(minutes=number)) for number, pipe in enumerate(pipes)]
    fails(pipe_of("d", "https://other.example.com/in"), now)
    Membership.objects.create(tenant=pipes[0].tenant, user=root, role="viewer")
    page = admin.get("/staff/board/").text
    found = section(page, "causes")
    assert "api.example.com returns 503 3 3" in found
    assert "other.example.com" not in found, "one tenant has no common cause"
    links = re.findall(r'href="(/[^"]+)">Tenant (\w)', page)
    assert [name for _, name in links] == ["c", "b", "a"], "the oldest alert first"
    assert {name: url for url, name in links}["a"] == f"/pipes/{pipes[0].id}/alerts/{alerts[0].id}/"
    assert [admin.get(url).status_code for url, _ in links] == [200, 200, 200]


def test_causes_are_common_only_with_the_same_status_host_and_response(admin: Client, pipe_of: PipeOf):
    now = timezone.now()
    one, other = pipe_of("a"), pipe_of("b")
    fails(one, now)
    fails(other, now, status=500)
    fails(pipe_of("c"), now, answer="")
    fails(pipe_of("d", "https://other.example.com/in"), now)
    assert "No destination fails" in admin.get("/staff/board/").text
    fails(one, now, cause="timeout", answer="", status=0)
    fails(other, now, cause="timeout", answer="", status=0)
    assert "api.example.com:" in section(admin.get("/staff/board/").text, "causes")
    Alert.objects.filter(pipe=one, cause="timeout").update(state="resolved")
    assert "No destination fails" in admin.get("/staff/board/").text


def test_attempts_that_fail_at_one_host_are_common_by_the_response_in_their_sample(admin: Client, pipe_of: PipeOf):
    for name, number in (("a", 17), ("b", 42)):
        sample = {"status": 503, "answer": f'503\n{{"error": "upstream {number} is down"}}'}
        pipe = pipe_of(name)
        report_condition(report=AlertReport(pipe.id, "crm", "failing", 9, {}, sample), now=timezone.now())  # type: ignore[arg-type]
    assert "api.example.com returns 503 2 2" in section(admin.get("/staff/board/").text, "causes")


def test_customer_of_a_common_cause_sees_only_the_own_alert(browser_of: BrowserOf, pipe_of: PipeOf):
    one, other = pipe_of("a"), pipe_of("b")
    alerts = [fails(pipe, timezone.now()) for pipe in (one, other)]
    owner = browser_of(User.objects.get(username="owner-a"))
    for path in ("/", "/alerts/", f"/pipes/{one.id}/alerts/{alerts[0].id}/"):
        page = owner.get(path).text
        assert not any(name in page for name in ("Tenant b", "pipe-b", other.id, alerts[1].id)), path
    for path in ("/staff/board/", "/staff/losses/", "/staff/controllers/scale/"):
        assert owner.get(path).status_code == 404, path
    assert owner.get(f"/pipes/{other.id}/alerts/{alerts[1].id}/").status_code == 404


def test_oldest_undelivered_message_of_all_tenants_is_linked(admin: Client, pipe_of: PipeOf):
    now = timezone.now()
    for name, minutes in (("a", 5), ("b", 90)):
        row = Destination.objects.get(pipe=pipe_of(name))
        at = now - timedelta(minutes=minutes)
        DestinationHealth.objects.create(destination=row, checked_at=now, waiting=3, oldest_at=at)
    page = admin.get("/staff/board/").text
    assert "Tenant b: pipe-b / crm" in plain(page)
    (link,) = re.findall(r'Oldest undelivered message</dt><dd class="plain"><a href="([^"]+)">', page)
    assert admin.get(link).status_code == 200


def test_cell_shows_lanes_heartbeat_lag_and_throughput_with_sparklines(admin: Client):
    now = timezone.now()
    cell = Cell.objects.create(id="c1", lanes={"process": 2, "transmit": 1})
    for writer, age_s in (("driver", 1), ("process-0", 2), ("process-1", 300), ("transmit-0", 2)):
        kind = writer.partition("-")[0]
        body = {"unsettled": 0, "lane_kinds": ["process", "transmit"]}
        row = {"epoch": 1, "incarnation": "i", "state": "running", "table_offset": 0, "body": body}
        Heartbeat.objects.create(cell="c1", writer=writer, kind=kind, at=now - timedelta(seconds=age_s), **row)
    seen = {"lanes": 1, "cpu": 0.5, "came": 12.0, "settled": 12.0, "backlog": 18, "lag_s": 1.5}
    ScaleGroup.objects.create(cell=cell, kind="process", maximum=4, seen=seen)
    for minutes in range(60):
        at = now - timedelta(minutes=minutes)
        count = 100_000 - 600 * minutes
        ScaleSample.objects.create(cell="c1", kind="process", at=at, lanes={}, came=count, settled=count)
    page = admin.get("/staff/board/").text
    found = section(page, "cells")
    assert "c1 no verdict yet 2 of 3 process 1 of 2" in found
    assert "5min" in found.replace(" ", ""), "the lane that has been silent longest"
    assert "1.5s" in found.replace(" ", "")
    assert re.search(r'aria-label="Events in per second: 10 to 10, last 10"', page.replace("10.0", "10"))
    rates = [rate for rate in board(now).cells[0].trend.rates if rate is not None]
    assert len(rates) >= 10
    assert rates == pytest.approx([10.0] * len(rates))


def test_controllers_show_last_run_outcome_pause_lease_and_waiting_work(admin: Client, root: User, pipe: Pipe):
    now = timezone.now()
    all_ran(now)
    Cell.objects.create(id="c1")
    TaskRun.objects.filter(task="autoscaler.tick").update(outcome="waiting", said="waiting for Kafka")
    pause_controller(controller="deploy", cell=None, reason="frozen", until=None, by=root, now=now)
    acquire("c1", "scale", "process 1 -> 2", now)
    refused = ControlAction.Outcome.REFUSED
    note("provision", "ramp", outcome=refused, at=now, cell="c1", refusal="cell-unstable", reason="c1 is unstable")
    pipe.revisions.update(state_reason="waiting for a cell with room")
    found = section(admin.get("/staff/board/").text, "controllers")
    for words in (
        "paused on all cells admin: frozen",
        "c1: process 1 -> 2",
        "waiting",
        "ramp on c1 refused",
        ": the cell is unstable",
        "orders @1: waiting for a cell with room",
    ):
        assert words in found, words


def test_board_has_a_constant_query_count_for_one_cell_and_tenant_and_for_many(
    admin: Client, pipe_of: PipeOf, django_assert_num_queries: DjangoAssertNumQueries
):
    now = timezone.now()
    for name in ("a", "b"):
        fails(pipe_of(name), now)
    unstable(now)
    note("scale", "scale-out", outcome=ControlAction.Outcome.DONE, at=now, cell="c1")
    admin.get("/staff/board/")
    with django_assert_num_queries(BOARD):
        admin.get("/staff/board/")
    for number in range(5):
        fails(pipe_of(f"more-{number}"), now)
        unstable(now, f"c{number + 2}")
        note("scale", "scale-out", outcome=ControlAction.Outcome.DONE, at=now, cell=f"c{number + 2}")
    with django_assert_num_queries(BOARD):
        assert "Tenant more-4" in admin.get("/staff/board/").text


def test_fragment_of_the_board_is_the_board_without_the_frame(admin: Client, tenant: Tenant):
    answer = admin.get("/staff/board/", {"part": "board"}, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    assert answer.text.lstrip().startswith('<div class="stack" id="board"')
