"""Fill a box with pipes worth showing; print one JSON line with the keys of the pipes.

    python tests/e2e/scene.py all http://127.0.0.1:9999               (the receiver; in the box's environment)
    python tests/e2e/scene.py pipe repairs http://127.0.0.1:9999/crm
    python tests/e2e/scene.py spec repairs '{"sources": ...}' '{"crm": {"value": "token"}}'   (and its credentials)
    python tests/e2e/scene.py people
    python tests/e2e/scene.py after                                   (when the ledger has the first failures)
    python tests/e2e/scene.py go-on                                   (resumes what a test left paused)
    python tests/e2e/scene.py channel ops@example.com                 (gets the tenant's alerts)
    python tests/e2e/scene.py lanes '{"process": 0}'                  (stops or starts lanes of the first cell)

/fine answers 204, /refuses a 4xx, /busy a 5xx: the test sets the receiver so. Nothing listens for visits.
"""

import json
import socket
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import django
import msgspec

from tests.support.hot_partition import DETAILS
from tests.support.numeric_drift import details, drifting
from tests.support.patience import Patience

django.setup()

from django.db import transaction  # noqa: E402
from django.db.models import F  # noqa: E402
from django.utils import timezone  # noqa: E402

from controlplane.observer.merge import fact_id  # noqa: E402
from controlplane.observer.rejecting import watch_rejections  # noqa: E402
from controlplane.observer.rejections import add_rejections  # noqa: E402
from controlplane.observer.rows import save_facts  # noqa: E402
from controlplane.observer.sequence_breaks import save_breaks  # noqa: E402
from controlplane.observer.version_traffic import add_traffic  # noqa: E402
from dataplane.causes import Cause  # noqa: E402
from dataplane.ledger.facts import ACKED, Fact, FactBook, FactKey  # noqa: E402
from dataplane.ledger.rejections import KAFKA, RejectionReport, RejectionSample  # noqa: E402
from dataplane.ledger.sequence_breaks import BreakKind, SequenceBreak  # noqa: E402
from dataplane.ledger.version_traffic import HOUR_US, VersionTraffic  # noqa: E402
from dataplane.names import WIRE_VERSION, transform_node, transmit_node  # noqa: E402
from dataplane.schemas.types import SchemaType  # noqa: E402
from mgmt import services  # noqa: E402
from mgmt.alerts.rejecting import RejectingPolicy  # noqa: E402
from mgmt.alerts.services.alerts import AlertReport, report_condition  # noqa: E402
from mgmt.cells.services.capacity_tests import store_capacity_results  # noqa: E402
from mgmt.deliveries.queries.message_selection import MessageSelection, waiting  # noqa: E402
from mgmt.delivery_tests.services import request_destination_test  # noqa: E402
from mgmt.ledger.queries.bucket_range import bucket_at  # noqa: E402
from mgmt.lookups.row_files import checked_row  # noqa: E402
from mgmt.messages.queries.last_event import newest_positions  # noqa: E402
from mgmt.models import (  # noqa: E402
    Admission,
    AlertChannel,
    Backfill,
    Cell,
    Finding,
    Membership,
    PatternHour,
    Pause,
    Pipe,
    PipeRevision,
    Ramp,
    Replay,
    Shadow,
    Subject,
    Tenant,
    User,
)
from mgmt.patterns.blocks import IN_HOUR, PatternBlock, block_at, hour_of  # noqa: E402
from mgmt.patterns.judge import PatternStreak  # noqa: E402
from mgmt.pipes.services.demo import ensure_demo_tenant, ensure_first_cell, ensure_staff_user  # noqa: E402
from mgmt.registry.drafts import SchemaDraft, SchemaReference  # noqa: E402
from mgmt.tenancy.services.invitations import add_invitation  # noqa: E402

TOLD_S = 60
LIVE_S = 180
SLOW_PER_S = 0.02
PASSWORD = "a long password for looking"


def everything(receiver: str) -> dict[str, Any]:
    """Create the users and the pipes; run once per box."""
    tenant, alice = _people()
    services.create_tenant(name="Second", owner=alice)
    vera = User.objects.create_user("vera", password=PASSWORD)
    services.add_member(tenant=tenant, user=vera, role=Membership.Role.VIEWER)
    User.objects.create_user("dora", password=PASSWORD)  # member of no tenant
    specs = {
        "orders": {"crm": f"{receiver}/fine", "audit": f"{receiver}/refuses"},
        "refunds": {"books": f"{receiver}/busy"},
        "visits": {"counter": nobody()},
        "archive": {"lake": f"{receiver}/fine"},
        "quiet": {"main": f"{receiver}/fine"},
    }
    table = services.create_lookup_table(tenant=tenant, name="customers")
    services.put_row(table=table, row=checked_row(1, "c-42", {"name": "Ada", "tier": "gold"}))
    catalogue = _fill_the_catalogue(tenant, alice)
    _create_tokens(tenant, alice)
    steps: list[dict[str, Any]] = [{"op": "peek", "name": "raw", "share": 1}]
    steps += [{"op": "rename", "path": "order.total", "to": "order.amount"}, {"op": "remove", "path": "order.note"}]
    keys = {name: _make(tenant, alice, name, urls, steps) for name, urls in specs.items()}
    _pause_deploying()
    _ask_for_a_release()
    _rate()
    _register(Pipe.objects.get(tenant=tenant, name="quiet"), alice)
    _ask_for_a_test_request(Pipe.objects.get(tenant=tenant, name="orders"), alice)
    _ask_for_a_token(Pipe.objects.get(tenant=tenant, name="quiet"), alice)
    pipes = list(Pipe.objects.filter(tenant=tenant, name__in=keys).values_list("id", flat=True))
    catalogue.append(_create_a_portal_link(Pipe.objects.get(tenant=tenant, name="orders"), alice))
    made = {"keys": keys, "pipes": pipes, "password": PASSWORD, "catalogue": catalogue}
    return made | {"invitation": _invite(tenant, alice)}


@transaction.atomic
def _invite(tenant: Tenant, owner: User) -> str:
    """Invite a viewer without an e-mail; return the path of the link."""
    role, now = Membership.Role.VIEWER, timezone.now()
    _, token = add_invitation(tenant=tenant, email="ada@example.com", role=role, by=owner, now=now)
    return f"/invitations/{token}/"


def nobody() -> str:
    """Return a URL at which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}/away"


def people() -> dict[str, Any]:
    """Create a customer, alice, and an admin, without a pipe."""
    _people()
    return {"password": PASSWORD}


def one_pipe(name: str, url: str, steps: str = "[]") -> dict[str, Any]:
    """Create a pipe with the one destination crm; `steps` of normalize as JSON."""
    tenant, alice = _people()
    key = _make(tenant, alice, name, {"crm": url}, json.loads(steps))
    return {"key": key, "pipe": Pipe.objects.get(tenant=tenant, name=name).id, "password": PASSWORD}


def table_of(name: str) -> dict[str, Any]:
    """Create an empty look-up table."""
    tenant, _ = _people()
    return {"table": services.create_lookup_table(tenant=tenant, name=name).id}


def pipe_of(name: str, spec: str, credentials: str = "{}") -> dict[str, Any]:
    """Create a pipe with this spec, whose one source is called shop; credentials by destination."""
    tenant, alice = _people()
    pipe = services.create_pipe(tenant=tenant, name=name, spec=json.loads(spec), author=alice)
    for destination, credential in json.loads(credentials).items():
        services.set_credential(destination=pipe.destinations.get(name=destination), credential=credential)
    key = services.create_api_key(source=pipe.sources.get(), label="shop")[1]
    return {"key": key, "pipe": pipe.id, "password": PASSWORD}


def two_tokens(name: str) -> dict[str, Any]:
    """Create two tenants with an owner each; return the tokens of the owners."""
    tokens = {}
    for word in ("first", "second"):
        owner = User.objects.create_user(f"{name}-{word}")
        tenant = services.create_tenant(name=f"{name} {word}", owner=owner)
        made = services.create_token(
            tenant=tenant, user=owner, by=owner, name="cli", scope="publish", days=1, now=timezone.now()
        )
        tokens[word] = made[1]
    return tokens


def channel(address: str) -> dict[str, Any]:
    """Send the tenant's alerts to this address, as if its owner had confirmed it."""
    tenant, _ = _people()
    now = timezone.now()
    row, _ = services.add_alert_channel(tenant=tenant, kind=AlertChannel.Kind.MAIL, target=address, now=now)
    services.confirm_channel(channel=row, now=now)
    return {"channel": row.id}


def set_lanes(wanted: str) -> dict[str, Any]:
    """Set numbers of lanes by kind on the first cell; print its topics by purpose."""
    cell = ensure_first_cell()
    lanes = cell.lanes | json.loads(wanted)
    Cell.objects.filter(id=cell.id).update(lanes=lanes, version=F("version") + 1)
    return {"cell": cell.id, "lanes": lanes, "topics": dict(cell.topics.values_list("purpose", "name"))}


def after() -> dict[str, Any]:
    """Create a closed pipe, a paused one, a held ramp, one with unusual patterns, two in admission, replays, a
    cancelled backfill, shadow runs, a slow redrive, and a migration to another cell that waits for it.
    """
    refunds, patience = _pipe("refunds"), Patience(LIVE_S)
    while not refunds.revisions.filter(number=1, state=PipeRevision.State.LIVE).exists():
        assert not patience.is_over, "refunds is not live, so no other revision can ramp"
        time.sleep(0.5)
    _ramp(refunds)
    _watch(_pipe("visits"))
    _break_sequence(_pipe("visits"))
    _replay(_pipe("visits"))
    _backfill(_pipe("visits"))
    _shadow(_pipe("visits"))
    _reject(_pipe("quiet"), User.objects.get(username="alice"))
    services.close_pipe(pipe=_pipe("archive"))
    services.pause_pipe(pipe=_pipe("quiet"))
    orders = _pipe("orders")
    _replace(orders)
    patience = Patience(TOLD_S)
    while not (waiting(pipe_ids=[orders.id], destination="audit") and orders.alerts.exists()):
        assert not patience.is_over, "no dead letter or no alert is recorded"
        time.sleep(0.5)
    services.start_redrive(pipe=orders, chosen=MessageSelection("audit"), rate_per_s=SLOW_PER_S)
    _let_in_by_shares("visits", "quiet")
    _ask_for_another_cell(orders)
    return {}


def _people() -> tuple[Tenant, User]:
    tenant, alice = ensure_demo_tenant()
    for user in (alice, ensure_staff_user()):
        if not user.check_password(PASSWORD):  # a new password would end the sessions of a test
            user.set_password(PASSWORD)
            user.save(update_fields=["password"])
    return tenant, alice


def _pipe(name: str) -> Pipe:
    """Return a pipe of the customer; other tests may have given another tenant's pipe its name."""
    return Pipe.objects.get(tenant=_people()[0], name=name)


def go_on() -> dict[str, Any]:
    """End the pauses of provisioning, so that a failed test does not block the ones after it."""
    staff, now = ensure_staff_user(), timezone.now()
    paused = Pause.objects.filter(controller="provision", ended_at=None)
    return {"ended": [services.resume_controller(pause=pause, by=staff, now=now) for pause in paused]}


def _pause_deploying() -> None:
    """Give the controllers' page a pause to show and to end."""
    services.pause_controller(
        controller="deploy", cell=None, reason="nobody is here", until=None, by=ensure_staff_user(), now=timezone.now()
    )


def _ask_for_a_release() -> None:
    """Give the releases' page a rollout to show and to roll back; it waits because deploying is paused."""
    now = timezone.now()
    release = services.register_release(release="f" * 16, wire=WIRE_VERSION, about="the next one", now=now)
    services.request_rollout(release=release, author=ensure_staff_user(), now=now)


def _rate() -> None:
    """Give the scaling page a capacity result to show."""
    bottleneck = "CPU of process: each process lane is at its limit with 0.97 of a core"
    rated = [
        {"group": group, "units": 1, "per_s": 9_400.0, "at_least": group != "process", "cpu_us": 103.2}
        for group in ("ingest", "process", "transmit")
    ]
    cell, by = ensure_first_cell(), ensure_staff_user()
    store_capacity_results(
        cell=cell, master="local", rated=rated, bottleneck=bottleneck, batch=1, by=by, now=timezone.now()
    )


@transaction.atomic
def _let_in_by_shares(on_its_way: str, held: str) -> None:
    """Create an admission that waits for traffic and one that a person holds."""
    for name in (on_its_way, held):
        Admission.objects.create(pipe=_pipe(name), expected_per_s=600, share=20)
    row = Admission.objects.get(pipe=_pipe(held))
    services.hold_admission(admission=row, by=ensure_staff_user(), now=timezone.now())


def _ask_for_another_cell(pipe: Pipe) -> None:
    """Give the cell's page a migration to show and to give up, and a target cell; no release runs there."""
    target, _ = Cell.objects.get_or_create(id="c2")
    services.request_migration(
        pipe=pipe, target=target, reason="its cell is full", by=ensure_staff_user(), now=timezone.now()
    )


def _ramp(pipe: Pipe) -> None:
    """Ramp a second revision at a quarter of the keys, held until a person resumes it."""
    alice = User.objects.get(username="alice")
    spec = pipe.revisions.get(number=1).spec
    revision = services.publish_revision(pipe=pipe, spec=spec, based_on=1, author=alice)
    services.begin_ramp(revision=revision, share=25, now=timezone.now())
    services.hold_ramp(ramp=Ramp.objects.get(revision=revision), by=alice, now=timezone.now())


def _backfill(pipe: Pipe) -> None:
    """Store a cancelled backfill, so that a page offers to retry it."""
    now = timezone.now()
    Backfill.objects.create(
        pipe=pipe, destination="counter", revision=1, beginning="earliest", created_at=now, ended_at=now
    )


def _replace(pipe: Pipe) -> None:
    """Replace the live revision at once, so that a page offers to revert to it."""
    alice = User.objects.get(username="alice")
    spec = pipe.revisions.get(number=1).spec
    services.publish_revision(pipe=pipe, spec=spec, based_on=1, author=alice, at_once=True)
    patience = Patience(LIVE_S)
    while not pipe.revisions.filter(number=2, state=PipeRevision.State.LIVE).exists():
        assert not patience.is_over, "the second revision is not live"
        time.sleep(0.5)


def _watch(pipe: Pipe) -> None:
    """Store four usual hours, a reported finding, a silenced one, two alerts about events, and an ignored field."""
    now = timezone.now()
    hour, block = hour_of(block_at(now)), msgspec.to_builtins(PatternBlock(1_000, 990, 10, 990, 40_000))
    for back in range(1, 5):
        PatternHour.objects.create(pipe_id=pipe.id, hour=hour - back, blocks=[block] * IN_HOUR)
    watch = msgspec.to_builtins(PatternStreak(block_at(now), outside=2, told=True))
    words = "0 events/min where 200 are usual in the hours before"
    Finding.objects.create(pipe=pipe, kind="quiet", since=now, told_at=now, words=words, watch=watch)
    report_condition(report=AlertReport(pipe.id, "", Cause.HOT_PARTITION, 9_000, DETAILS, {}), now=now)
    found = details(drifting(), drifting(path="user.age"))
    report_condition(report=AlertReport(pipe.id, "", Cause.NUMERIC_DRIFT, 2, found, {}), now=now)
    alice = User.objects.get(username="alice")
    services.ignore_field(pipe=pipe, source="shop", path="order.number", by=alice, now=now)
    words, silenced = "a lag p95 of 9 s where 0 s is usual in the hours before", "while cell c1 is unstable"
    Finding.objects.create(pipe=pipe, kind="slow", since=now, ended_at=now, words=words, silenced=silenced)


def _reject(pipe: Pipe, author: User) -> None:
    """Bind an event type, and store events of a key and of a Kafka source that did not fit it, with their alert."""
    source = pipe.sources.get()
    services.set_webhook(source=source, preset="github", secret="secret-of-the-scene", headers=["x-shop"], by=author)
    services.create_api_key(source=source, use="url", by=author)
    services.set_event_types(
        source=pipe.sources.get(), type_from="field:type", subjects={"order": "orders-value"}, by=author
    )
    now = timezone.now()
    texts = {"event_type": "order", "code": "schema", "pointer": "/note", "detail": "/note: needs union, got a number"}
    sample = RejectionSample(int(now.timestamp()) * 1_000_000, 31, json.dumps({"type": "order", "note": 7}))
    with transaction.atomic():
        add_rejections(
            RejectionReport(
                pipe.id, "shop", **texts, sender=sender, minute=bucket_at(now) - ago, events=events, samples=[sample]
            )
            for sender, events in ((KAFKA, 9), ("gone", 4_000))
            for ago in range(3)
        )
        hour = int(now.timestamp()) * 1_000_000 // HOUR_US
        add_traffic([VersionTraffic(pipe.id, "shop", "orders-value@1", hour, 1_234_567, 12_027)])
    watch_rejections(now, RejectingPolicy())


def _break_sequence(pipe: Pipe) -> None:
    """Store breaks of each kind at events of the pipe, one of them with a long key."""
    now = timezone.now()
    found: tuple[tuple[str, BreakKind, int, int, list[tuple[int, int]]], ...] = (
        ("x" * 256, "gap", 44, 40, [(41, 43)]),
        ("pump-7", "gap", 5_000_000_000, 44, [(46, 46), (48, 53)]),
        ("pump-7", "out-of-order", 42, 44, []),
        ("pump-8", "repeated", 42, 44, []),
    )
    positions = _newest(pipe, len(found))
    at_us = int(now.timestamp()) * 1_000_000
    save_breaks(
        SequenceBreak(pipe.id, 1, "shop", key, kind, bucket_at(now), position, at_us, False, number, previous, ranges)
        for position, (key, kind, number, previous, ranges) in zip(positions, found, strict=True)
    )


def _replay(pipe: Pipe) -> None:
    """Store a finished replay of real events, a finished rehearsal, and a paused replay, which no driver ends."""
    positions, now = _newest(pipe, 4), timezone.now()
    start, end = now - timedelta(minutes=20), now - timedelta(minutes=10)
    ended = {
        "state": "done", "state_since": end, "started_at": start, "progress_at": end, "finished_at": end, "read": 4,
        "asked": 4, "ends": {"events/0": 4}, "reached": {"events/0": 4}, "units": {"counter": 4}, "size_bytes": 480,
    }  # fmt: skip
    bins = {"delivered": 2, "dead": 1, "cancelled": 1}
    nodes = [{"node": name, "arrived": 4, "lost": 0} for name in ("ingest", "route", transmit_node("counter"))]
    result = {"asked": 4, "bins": {"counter": bins}, "nodes": nodes}
    done = _replay_row(pipe, start, **ended, result=result, result_at=now)
    facts = FactBook()
    for key, some in (
        (FactKey("ingest", Fact.SENT, ACKED), positions),
        (FactKey("process", Fact.SENT), positions),
        (FactKey(transform_node("counter"), Fact.SENT), positions),
        (FactKey(transmit_node("counter"), Fact.DELIVERED), positions[:2]),
        (FactKey(transmit_node("counter"), Fact.DEAD, "rejected"), positions[2:3]),
        (FactKey(transmit_node("counter"), Fact.CANCELLED, "held"), positions[3:]),
    ):
        facts.extend(done.id, done.bucket, key, some)
    save_facts({fact_id(one, 0): one.positions for one in facts.sets()})
    nothing = {"asked": 4, "bins": {}, "nodes": []}
    rehearsed = ended | {"units": {"counter": 3}, "failed": 1, "size_bytes": 360, "rehearsal": True}
    _replay_row(pipe, start, **rehearsed, where="body.order.number > 0", result=nothing, result_at=now)
    under_way = {"read": 620, "asked": 600, "ends": {"events/0": 1_000}, "reached": {"events/0": 620}}
    _replay_row(
        pipe, start, state="paused", state_since=end, started_at=start, progress_at=end, units={"counter": 600},
        keys=["pump-7"], **under_way,
    )  # fmt: skip


def _replay_row(pipe: Pipe, created: datetime, **fields: Any) -> Replay:
    about = {"tenant": pipe.tenant, "pipe": pipe, "cell": pipe.cell, "by": User.objects.get(username="alice")}
    period = {"created_at": created, "since": created - timedelta(hours=12), "until": created}
    settings = {"bucket": bucket_at(created), "revision": 1, "destinations": ["counter"], "rate_per_s": 50}
    return Replay.objects.create(**about, **period, **settings, **fields)


def _shadow(pipe: Pipe) -> None:
    """Store a finished shadow run with differences of real events, and one that followed live traffic."""
    positions, now = _newest(pipe, 4), timezone.now()
    start, end = now - timedelta(minutes=20), now - timedelta(minutes=10)
    values = [
        {"path": "total", "live": '"12.50"', "draft": "12.5"},
        {"path": "lines", "live": '[{"sku":"A-1","count":2},{"sku":"B-7","count":1}]', "draft": None},
    ]
    samples = [
        {"kind": kind, "position": position, "reason": reason, "fields": fields, "destination": "counter", "child": 0}
        for position, (kind, reason, fields) in zip(
            positions,
            [("different", "", values), ("only_live", "filter", []), ("only_live", "step", []), ("only_draft", "", [])],
            strict=True,
        )
    ]
    results = {
        "units": {"counter": {"equal": 9_120, "different": 640, "only_live": 200, "only_draft": 35, "not_sent": 5}},
        "fields": {"counter": {"total": 640, "lines": 12, "": 3}}, "rejected": {"step": 41}, "samples": samples,
        "cost_events": 500, "live_cpu_us": 30_600, "draft_cpu_us": 33_200,
    }  # fmt: skip
    reported = {"started_at": start, "progress_at": end, "compared_until": end, "state_since": end, "finished_at": end}
    _shadow_row(pipe, start, state="done", until=start, most_events=10_000, events=10_000, **results, **reported)
    _shadow_row(pipe, start, state="stopped", most_events=0, why_stopped="it ran for 7 days", **reported)


def _shadow_row(pipe: Pipe, created: datetime, **fields: Any) -> None:
    live = pipe.revisions.get(state=PipeRevision.State.LIVE)
    draft = {**live.spec, "normalize": [*live.spec["normalize"], {"op": "filter", "when": "has(body.order)"}]}
    about = {"tenant": pipe.tenant, "pipe": pipe, "cell": pipe.cell, "by": User.objects.get(username="alice")}
    based_on = {"revision": live.number, "based_on": pipe.revisions.latest("number").number, "spec": draft}
    Shadow.objects.create(**about, **based_on, created_at=created, since=created - timedelta(hours=12), **fields)


def _newest(pipe: Pipe, count: int) -> list[int]:
    """Wait until the ledger has so many events of the pipe; return their positions."""
    patience = Patience(TOLD_S)
    while len(positions := newest_positions(pipe, count)) < count:
        assert not patience.is_over, "the ledger does not have enough events of the pipe"
        time.sleep(0.5)
    return positions


def _ask_for_a_test_request(pipe: Pipe, author: User) -> None:
    """Send a test request to the refusing destination, so that a page has its response."""
    audit = pipe.destinations.get(name="audit")
    request_destination_test(destination=audit, event=b'{"order": 1}', by=author, now=timezone.now())


def _ask_for_a_token(pipe: Pipe, author: User) -> None:
    """Publish a revision whose destination still needs its credential."""
    spec = pipe.revisions.get(number=1).spec
    spec["destinations"]["main"]["auth"] = {"type": "bearer"}
    services.publish_revision(pipe=pipe, spec=spec, based_on=1, author=author)


def _register(pipe: Pipe, author: User) -> None:
    """Register two versions of its source's schema; the other pipes have none."""
    fields = {"id": {"type": "string"}, "amount": {"type": "number"}}
    for more in ({}, {"note": {"type": ["string", "null"]}}):
        document = {"type": "object", "properties": fields | more, "required": ["id"], "additionalProperties": False}
        services.register_schema(source=pipe.sources.get(), document=document, author=author)


def _create_tokens(tenant: Tenant, owner: User) -> None:
    """Create a service account, a token of it that expires soon, and an endless one of the owner."""
    now = timezone.now()
    account = services.create_service_account(tenant=tenant, name="deploy", role="editor", by=owner, now=now)
    for user, name, scope, days in ((account.user, "CI", "publish", 7), (owner, "Dashboard", "read", None)):
        services.create_token(tenant=tenant, user=user, by=owner, name=name, scope=scope, days=days, now=now)


def _fill_the_catalogue(tenant: Tenant, author: User) -> list[str]:
    """Register two versions of a subject and a deprecated subject that it refers to; return paths of the shared pages.

    The link is open, so that the page about links has one.
    """
    name = {"name": "name", "type": "string", "doc": "Name of the customer."}
    customer = {"type": "record", "name": "Customer", "namespace": "com.shop", "fields": [name]}
    fields: list[dict[str, Any]] = [{"name": "id", "type": "string"}, {"name": "customer", "type": "Customer"}]
    note = {"name": "note", "type": ["null", "string"], "default": None}
    orders = [{**customer, "name": "Order", "fields": fields + more} for more in ([], [note])]
    references = (SchemaReference("com.shop.Customer", "com.shop.Customer", 1),)
    for subject, schema, used in (
        ("com.shop.Customer", customer, ()),
        ("orders-value", orders[0], references),
        ("orders-value", orders[1], references),
    ):
        draft = SchemaDraft(SchemaType.AVRO, json.dumps(schema), used)
        version, _ = services.register_version(tenant=tenant, subject=subject, draft=draft, author=author)
    services.deprecate_version(version=version.subject.versions.get(number=1), now=timezone.now())
    customers = Subject.objects.get(tenant=tenant, name="com.shop.Customer")
    services.deprecate_subject(subject=customers, now=timezone.now())
    _, token = services.create_catalogue_link(
        tenant=tenant, author=author, label="Partner", days=30, now=timezone.now()
    )
    return [f"/catalogue/{token}/", f"/catalogue/{token}/{version.subject_id}/?since=1"]


def _create_a_portal_link(pipe: Pipe, author: User) -> str:
    """Create an open portal link that permits everything; return its path."""
    destination = pipe.destinations.order_by("name")[0]
    _, token = services.create_portal_link(
        destination=destination,
        author=author,
        label="Acme",
        now=timezone.now(),
        may_redrive=True,
        may_edit=True,
        accent="#aa3300",
    )
    return f"/portal/{token}/"


def _make(tenant: Any, author: User, name: str, urls: dict[str, str], steps: list[dict[str, Any]]) -> str:
    destinations = {where: {"type": "http", "url": url} for where, url in urls.items()}
    spec = {"sources": {"shop": {"event_time": "created_at"}}, "normalize": steps, "destinations": destinations}
    pipe = services.create_pipe(tenant=tenant, name=name, spec=spec, author=author)
    source = pipe.sources.get()
    old, _ = services.create_api_key(source=source, label="old till")
    services.revoke_api_key(key=old)
    return services.create_api_key(source=source, label="shop")[1]


if __name__ == "__main__":
    actions: dict[str, Callable[..., dict[str, Any]]] = {
        "all": everything,
        "people": people,
        "spec": pipe_of,
        "table": table_of,
        "channel": channel,
        "tokens": two_tokens,
        "lanes": set_lanes,
        "pipe": one_pipe,
        "after": after,
        "go-on": go_on,
    }
    sys.stdout.write(json.dumps(actions[sys.argv[1]](*sys.argv[2:])))
