"""What the Observer's task does: alerts told by mail and webhook, probes judged, incidents watched."""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.core import mail
from pyroaring import BitMap64
from pytest_django import Settings
from standardwebhooks import Webhook

from controlplane.compute.memory import MemoryCompute
from controlplane.observer.incidents import watch_incidents
from controlplane.observer.long_held import warn_of_long_held
from controlplane.observer.notices import MOST_TRIES, send_due
from controlplane.observer.tasks import tend
from controlplane.provisioner import look
from mgmt.models import Alert, Attempt, Cell, DeadLetter, Destination, FactRow, Incident, Move, Notice, Pipe, Tenant
from mgmt.models import Heartbeat as HeartbeatRow
from mgmt.models import User as UserRow
from mgmt.provisioning.placing import PlacingPolicy
from mgmt.provisioning.ramps import RampPolicy
from mgmt.queries.places import HOUR_S
from mgmt.services import (
    NothingToProbe,
    NotOpen,
    create_pipe,
    create_tenant,
    probe_alert,
    resolve_alert,
)
from mgmt.services.alerts import Failure, note_failures, resolve_what_was_released
from mgmt.services.destinations import move_destination
from mgmt.services.places import Found, SetId, add_places
from mgmt.services.probes import PROBE_FOR, judge_probes
from tests.db.cast import MakeSpec
from tests.db.channels import add_active_channel

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
SOON = NOW + timedelta(seconds=15)
DEAD = "penstock.c1.dead.g1"


class Hook(BaseHTTPRequestHandler):
    """Notes what comes and answers what the test asked for."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append((dict(self.headers), body))  # type: ignore[attr-defined]
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_args: Any) -> None:
        """Nothing."""


@pytest.fixture
def hook(settings: Settings) -> Iterator[Any]:
    settings.PENSTOCK_DESTINATION_ALLOW = "127.0.0.0/8"
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    server.got, server.status = [], 200
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def placed(pipe: Pipe) -> Pipe:
    pipe.cell = Cell.objects.create(id="c1")
    pipe.save()
    return pipe


def fail(pipe: Pipe, *, cause: str = "rejected", suspended: bool = False, at: datetime = NOW) -> Alert:
    sample = {"status": 401, "message_id": "m1", "reason": "rejected: answered 401", "curl": "curl -X POST x"}
    note_failures(failures=[Failure(pipe.id, "crm", cause, 3, at, sample, suspended)], now=at)
    return Alert.objects.filter(pipe=pipe, cause=cause).latest("id")


def letter(pipe: Pipe, offset: int, at: datetime = NOW) -> DeadLetter:
    at_s = int(at.timestamp())
    add_places([Found(SetId(pipe.id, "crm", "dead", "rejected", DEAD, 0, at_s // HOUR_S), offset, at_s)])
    return DeadLetter.objects.create(
        pipe_id=pipe.id,
        destination="crm",
        node="transmit:crm",
        cause="rejected",
        message_id=f"m{offset}",
        position=offset,
        bucket=100,
        revision=1,
        attempts=0,
        at=at,
        topic=DEAD,
        partition=0,
        offset=offset,
    )


def tried(pipe: Pipe, position: int, outcome: str, at: datetime) -> None:
    Attempt.objects.create(
        pipe_id=pipe.id,
        destination="crm",
        message_id=f"m{position}",
        position=position,
        revision=1,
        bucket=100,
        number=2,
        at=at,
        status=401,
        outcome=outcome,
        reason="rejected: answered 401",
        timing_us={},
    )


def delivered(pipe: Pipe, position: int) -> None:
    FactRow.objects.create(
        pipe_id=pipe.id,
        bucket=100,
        node="transmit:crm",
        fact="delivered",
        audit_partition=0,
        positions=BitMap64([position]).serialize(),
        count=1,
    )


def test_an_alert_is_mailed_once_within_a_minute_and_so_is_its_end(pipe: Pipe, tenant: Tenant):
    add_active_channel(tenant=tenant, kind="mail", target="alice@example.com")
    alert = fail(pipe, suspended=True)
    assert send_due(NOW) == 0
    assert [send_due(SOON), send_due(SOON)] == [1, 0]
    (message,) = mail.outbox
    assert message.to == ["alice@example.com"]
    for words in ("orders", "crm", "3 messages", "held, none is lost", "answered 401", "curl -X POST x", alert.id):
        assert words in message.body, words
    fail(pipe, at=SOON)
    assert send_due(SOON + timedelta(minutes=5)) == 0, "repeats are quiet"
    resolve_alert(alert=alert, now=NOW + timedelta(minutes=10), resolution="deliveries go well again")
    assert send_due(NOW + timedelta(minutes=10)) == 1
    assert "0:10:00" in mail.outbox[1].body
    assert "6 messages" in mail.outbox[1].body


def test_a_webhook_gets_it_signed(pipe: Pipe, tenant: Tenant, hook: Any):
    url = f"http://127.0.0.1:{hook.server_port}/"
    _row, secret = add_active_channel(tenant=tenant, kind="webhook", target=url)
    alert = fail(pipe, at=datetime.now(UTC))
    assert send_due(datetime.now(UTC) + timedelta(seconds=20)) == 1
    (headers, body) = hook.got[0]
    said = Webhook(secret).verify(body, {name.lower(): value for name, value in headers.items()})
    assert said == json.loads(body)
    assert (said["type"], said["alert"], said["count"]) == ("alert.opened", alert.id, 3)


def test_a_webhook_that_fails_is_tried_again_and_not_for_ever(pipe: Pipe, tenant: Tenant, hook: Any):
    add_active_channel(tenant=tenant, kind="webhook", target=f"http://127.0.0.1:{hook.server_port}/")
    hook.status = 500
    fail(pipe)
    at = SOON
    for _ in range(MOST_TRIES + 3):
        send_due(at)
        at += timedelta(days=1)
    notice = Notice.objects.get()
    assert (notice.state, notice.error, len(hook.got)) == ("failed", "answered 500", MOST_TRIES)


def test_a_webhook_that_leads_inside_by_now_is_not_called(pipe: Pipe, tenant: Tenant, hook: Any, settings: Settings):
    add_active_channel(tenant=tenant, kind="webhook", target=f"http://127.0.0.1:{hook.server_port}/")
    settings.PENSTOCK_DESTINATION_ALLOW = ""
    fail(pipe)
    assert send_due(SOON) == 0
    assert hook.got == []
    assert "may not be called" in Notice.objects.get().error


def test_a_secret_that_does_not_open_silences_nobody_else(pipe: Pipe, tenant: Tenant, hook: Any):
    broken, _ = add_active_channel(tenant=tenant, kind="webhook", target=f"http://127.0.0.1:{hook.server_port}/a")
    other, _ = add_active_channel(tenant=tenant, kind="webhook", target=f"http://127.0.0.1:{hook.server_port}/b")
    broken.secret = other.secret
    broken.save()
    fail(pipe)
    assert send_due(SOON) == 1
    assert "another place" in Notice.objects.get(channel=broken).error


def test_a_probe_that_is_accepted_brings_the_rest_back_and_resolves(placed: Pipe, alice: UserRow):
    for offset in range(3):
        letter(placed, offset)
    move_destination(row=placed.destinations.get(), was=["active"], becomes="suspended", cause="storm")
    alert = fail(placed, suspended=True)
    move = probe_alert(alert=alert, by=alice, now=NOW)
    assert (move.total, move.probe, placed.destinations.get().probe) == (1, True, "m0")
    assert placed.destinations.get().state == "suspended"
    with pytest.raises(NotOpen):
        probe_alert(alert=alert, by=alice, now=NOW)
    assert judge_probes(now=NOW) == 0
    delivered(placed, 0)
    assert judge_probes(now=SOON) == 1
    row = placed.destinations.get()
    assert (row.state, row.probe) == ("active", "")
    rest = Move.objects.get(probe=False)
    assert (rest.what, rest.total, rest.alert_id) == ("redrive", 2, alert.id)
    assert resolve_what_was_released(now=SOON) == 0
    Move.objects.update(state="done", finished_at=SOON, moved=1)
    assert resolve_what_was_released(now=SOON) == 1
    alert.refresh_from_db()
    assert (alert.state, alert.probe) == ("resolved", "accepted")


@pytest.mark.parametrize("between", ["_revisions", "_cells", "_beats", "recently_taken"])
def test_whoever_sees_a_probes_move_sees_its_destination_let_it_pass(
    placed: Pipe, alice: UserRow, monkeypatch: pytest.MonkeyPatch, between: str
):
    """The Provisioner reads its rows one table after the other, while people go on working."""
    letter(placed, 0)
    move_destination(row=placed.destinations.get(), was=["active"], becomes="suspended", cause="storm")
    alert, before = fail(placed, suspended=True), placed.destinations.get().version
    asked = getattr(look, between)

    def meanwhile(*args: Any) -> Any:
        if not Move.objects.exists():
            probe_alert(alert=alert, by=alice, now=NOW)
        return asked(*args)

    monkeypatch.setattr(look, between, meanwhile)
    for _ in range(2):  # by the second look the move is there for certain
        seen = look.take_snapshot(
            compute=MemoryCompute(),
            published={},
            master="local[2]",
            now=NOW,
            problems={},
            check_topics=False,
            policy=RampPolicy(),
            placing=PlacingPolicy(),
        )
        (version,) = [row.version for row in seen.destinations if row.name == "crm"]
        assert not seen.moves or version > before
    assert seen.moves


def test_a_probe_that_is_refused_changes_nothing_but_says_why(placed: Pipe, alice: UserRow):
    letter(placed, 0)
    move_destination(row=placed.destinations.get(), was=["active"], becomes="suspended", cause="storm")
    alert = fail(placed, suspended=True)
    tried(placed, 0, "dead", NOW - timedelta(minutes=1))
    probe_alert(alert=alert, by=alice, now=NOW)
    assert judge_probes(now=SOON) == 0
    tried(placed, 0, "dead", SOON)
    assert judge_probes(now=SOON) == 1
    alert.refresh_from_db()
    assert (alert.probe, alert.probe_says, alert.state) == ("refused", "rejected: answered 401", "opened")
    assert (placed.destinations.get().state, placed.destinations.get().probe) == ("suspended", "")


def test_a_probe_nobody_answers_ends_by_itself(placed: Pipe, alice: UserRow):
    letter(placed, 0)
    alert = fail(placed)
    probe_alert(alert=alert, by=alice, now=NOW)
    assert judge_probes(now=NOW + PROBE_FOR + timedelta(seconds=1)) == 1
    alert.refresh_from_db()
    assert alert.probe_says == "no answer within 120 s"


def test_without_a_message_there_is_no_probe(placed: Pipe, alice: UserRow):
    with pytest.raises(NothingToProbe):
        probe_alert(alert=fail(placed), by=alice, now=NOW)


def test_one_cause_at_three_tenants_is_one_incident(alice: UserRow, a_spec: MakeSpec, settings: Settings):
    settings.PENSTOCK_OPERATOR_MAIL = "ops@example.com"
    alerts = []
    for number in range(3):
        tenant = create_tenant(name=f"T{number}", owner=alice)
        alerts.append(fail(create_pipe(tenant=tenant, name="p", spec=a_spec(), author=alice), cause="tls"))
        assert watch_incidents(NOW) == (1 if number == 2 else 0)
    assert watch_incidents(NOW) == 0
    assert (Incident.objects.get().cause, Incident.objects.get().tenants, len(mail.outbox)) == ("tls", 3, 1)
    resolve_alert(alert=alerts[0], now=SOON)
    watch_incidents(SOON)
    assert Incident.objects.get().resolved_at == SOON


def test_a_lane_that_cannot_go_on_is_an_incident_until_it_can(placed: Pipe):
    refuses = "penstock.c1.dead.g1 refuses records: too large (3 wait)"
    beat = HeartbeatRow(
        cell=placed.cell_id or "", writer="transmit-0", kind="transmit", epoch=1, table_offset=0, at=NOW
    )
    for detail, incidents in (("", 0), (refuses, 1)):
        HeartbeatRow.objects.all().delete()
        beat.body, beat.pk = {"detail": detail}, None
        beat.save()
        assert watch_incidents(NOW) == incidents
    assert (Incident.objects.get().cause, Incident.objects.get().tenants) == ("lane-blocked", 1)
    watch_incidents(SOON)  # the lane is silent, or says nothing of the kind any more
    assert Incident.objects.get().resolved_at == SOON


def test_what_is_held_for_half_of_its_time_is_said_aloud_once(placed: Pipe):
    at_s = int((NOW - timedelta(days=8)).timestamp())
    add_places([Found(SetId(placed.id, "crm", "held", "", "penstock.c1.held.g1", 0, at_s // HOUR_S), 1, at_s)])
    assert warn_of_long_held(NOW - timedelta(days=2), timedelta(days=14)) == 0
    assert [warn_of_long_held(NOW, timedelta(days=14)) for _ in range(2)] == [1, 0]
    assert (Alert.objects.get().cause, Alert.objects.get().count) == ("held-too-long", 1)


@pytest.mark.usefixtures("db")
def test_the_task_runs_with_nothing_to_do():
    assert tend() == "nothing to do"
    assert not Destination.objects.exists()
