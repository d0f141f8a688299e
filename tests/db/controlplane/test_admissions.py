"""Admission of a new pipe by shares of its keys: rows, records, releases, alerts and pages."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from controlplane.explain import explain
from controlplane.observer.store import LedgerStore
from controlplane.provisioner.admissions import advance_admissions, open_admissions
from controlplane.provisioner.records import desired_records
from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.names import cell_topic
from dataplane.tables.records import PipeRecord
from dataplane.tables.redrives import REDRIVES_VERSION, RedriveProgress
from mgmt.alerts.services.alerts import resolve_recovered
from mgmt.deliveries.services.redrives import note_progress, release_leftovers
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Admission, Alert, AuditOffset, Cell, CellVerdict, ControlAction, Pipe, Redrive, Tenant, User
from mgmt.ramps.admission_schedule import AdmissionPolicy
from mgmt.services import AdmissionCompleteError, create_pipe, hold_admission, resume_admission
from tests.db.cast import MakeSpec
from tests.db.console.truth import Truth, go_live
from tests.db.controlplane.test_observer_outcomes import Message, save

NOW = datetime(2026, 11, 22, 12, 0, 10, tzinfo=UTC)
LATER = NOW + timedelta(seconds=45)
POLICY = AdmissionPolicy()
HELD = cell_topic("c1", "held", 1)


@pytest.fixture
def gentle(tenant: Tenant, alice: User, a_spec: MakeSpec) -> Pipe:
    pipe = create_pipe(tenant=tenant, name="gentle", spec=a_spec(), author=alice, expected_per_s=2_000)
    go_live(pipe)
    pipe.refresh_from_db()
    return pipe


@pytest.fixture
def store(gentle: Pipe) -> LedgerStore:
    store = LedgerStore()
    AuditOffset.objects.create(topic=HELD, partition=0, next_offset=0)
    store.offsets[HELD, 0] = 0
    return store


def held(pipe: Pipe, offset: int, share: int) -> Message:
    meta = MessageMeta(
        1, f"m{offset}", pipe.id, 1, "shop", 0, 0, 29_000_000, position=offset + 1, attempt=1, share=share
    )
    return Message(HELD, offset, headers=[(META_HEADER, encode_meta(meta))])


def taken(pipe: Pipe, share: int, count: int, *, dead: int = 0) -> None:
    truth, bucket = Truth(pipe), bucket_at(NOW) + share // 50  # a separate minute for each step
    for detail in ("acked", "seen"):
        truth.fact(bucket, "ingest", "sent", [*range(count)], detail)
    truth.fact(bucket, f"ramp:{share}:1", "sent", [*range(count)])
    for node in ("process", "transform:crm"):
        truth.fact(bucket, node, "sent", [*range(dead, count)])
    if dead:
        truth.fact(bucket, "normalize", "dead", [*range(dead)], "step")


def way_of(pipe: Pipe) -> Admission:
    return Admission.objects.get(pipe=pipe)


def record_of(pipe: Pipe) -> PipeRecord:
    (record,) = desired_records([f"pipe/{pipe.id}"]).records
    assert isinstance(record, PipeRecord)
    return record


def admitted(pipe: Pipe) -> int:
    return record_of(pipe).admitted


def ended(move: Redrive) -> RedriveProgress:
    return RedriveProgress(REDRIVES_VERSION, move.id, move.total, 0, move.total, True, 0, {})


def test_pipe_with_low_expected_traffic_is_admitted_at_once(pipe: Pipe):
    go_live(pipe)
    assert not Admission.objects.exists()
    assert admitted(pipe) == 100
    assert open_admissions(NOW) == []


def test_pipe_with_high_expected_traffic_begins_with_a_share(gentle: Pipe):
    assert (way_of(gentle).share, admitted(gentle)) == (20, 20)
    advance_admissions(NOW, POLICY)
    assert way_of(gentle).reason == "20 % of its keys are admitted; it waits for its first messages"


def test_share_is_raised_stepwise_once_the_admitted_messages_are_released(gentle: Pipe, store: LedgerStore):
    save(store, *(held(gentle, n, share) for n, share in enumerate([21, 50, 51, 100])))
    advance_admissions(NOW, POLICY)
    assert way_of(gentle).step_at == NOW
    taken(gentle, 20, 40)
    assert release_leftovers() == 0, "no held message is admitted yet"
    version = Pipe.objects.get(id=gentle.id).version
    assert advance_admissions(LATER, POLICY) == 1
    assert (way_of(gentle).share, admitted(gentle)) == (50, 50)
    assert Pipe.objects.get(id=gentle.id).version == version + 1
    (view,) = open_admissions(LATER)
    assert (view.waiting, view.beyond) == (2, 2)

    assert (release_leftovers(), release_leftovers()) == (1, 0)
    move = Redrive.objects.get()
    assert (move.destination, move.total, move.rate_per_s) == ("", 2, 4_000.0)
    taken(gentle, 50, 40)
    much_later = LATER + timedelta(seconds=45)
    advance_admissions(much_later, POLICY)
    assert way_of(gentle).reason == "50 % of its keys are admitted; their held messages are being released"
    note_progress(progress=ended(move), now=much_later)
    advance_admissions(much_later, POLICY)
    assert (way_of(gentle).share, release_leftovers()) == (100, 1)
    whole = record_of(gentle)
    assert (whole.admitted, whole.by_shares) == (100, True), "lanes also report the messages of the last step"
    note_progress(progress=ended(Redrive.objects.latest("created_at")), now=much_later)
    taken(gentle, 100, 40)
    advance_admissions(much_later + timedelta(minutes=6), POLICY)
    assert way_of(gentle).ended_at is not None
    over = record_of(gentle)
    assert (over.admitted, over.by_shares, over.version) == (100, False, whole.version + 1)
    acts = ControlAction.objects.filter(pipe=gentle, action="admit-share").order_by("id")
    assert [act.detail["share"] for act in acts] == [50, 100]


def test_unstable_cell_keeps_the_share_unchanged(gentle: Pipe, store: LedgerStore):
    save(store, held(gentle, 0, 90))
    advance_admissions(NOW, POLICY)
    taken(gentle, 20, 40)
    CellVerdict.objects.update_or_create(
        cell=Cell.objects.get(id="c1"), defaults={"state": "unstable", "since": NOW, "reasons": [], "at": NOW}
    )
    for _ in range(2):
        advance_admissions(LATER, POLICY)
    assert way_of(gentle).share == 20
    assert way_of(gentle).reason.startswith("20 % of its keys are admitted; the cell is recovering")
    refused = ControlAction.objects.get(action="admit-share")
    assert (refused.outcome, refused.refusal, refused.cell_id, refused.pipe) == (
        "refused", "cell-unstable", "c1", gentle,
    )  # fmt: skip
    assert refused.reason.startswith("cell c1 is unstable since ")


def test_failing_admission_is_rolled_back_and_alerts_a_person(gentle: Pipe, store: LedgerStore, bob: User):
    save(store, *(held(gentle, n, share) for n, share in enumerate([10, 90])))
    release_leftovers()
    advance_admissions(NOW, POLICY)
    taken(gentle, 20, 40, dead=10)
    assert advance_admissions(NOW, POLICY) == 1
    why = (
        "10 of 40 messages failed while 20 % of its keys were admitted; "
        "0 % of the keys are admitted now, the rest is held"
    )
    way = way_of(gentle)
    assert (way.share, way.reason, way.held_by, admitted(gentle)) == (0, why, None, 0)
    assert Redrive.objects.get().state == Redrive.State.ABORTING
    alert = Alert.objects.get()
    assert (alert.destination, alert.cause, alert.sample["reason"]) == ("", "admission", why)
    assert advance_admissions(LATER, POLICY) == 0, "the admission waits for a person"
    assert resolve_recovered(now=NOW + timedelta(hours=1)) == 0, "its events are still held"

    assert resume_admission(admission=way, by=bob, now=LATER + timedelta(minutes=5))
    advance_admissions(LATER + timedelta(minutes=5), POLICY)
    assert way_of(gentle).share == 20
    assert advance_admissions(LATER + timedelta(minutes=5, seconds=1), POLICY) == 0, (
        "failures before the resumption do not count"
    )
    assert way_of(gentle).share == 20
    assert resolve_recovered(now=LATER + timedelta(minutes=6)) == 1
    assert Alert.objects.get().resolution == "the admission was resumed"


def test_person_holds_the_admission_at_its_share(gentle: Pipe, store: LedgerStore, bob: User):
    save(store, held(gentle, 0, 90))
    advance_admissions(NOW, POLICY)
    taken(gentle, 20, 40)
    assert hold_admission(admission=way_of(gentle), by=bob, now=NOW)
    assert not hold_admission(admission=way_of(gentle), by=bob, now=NOW)
    advance_admissions(LATER, POLICY)
    assert (way_of(gentle).share, way_of(gentle).reason) == (20, "20 % of its keys are admitted: held by bob")
    Admission.objects.update(ended_at=NOW)
    with pytest.raises(AdmissionCompleteError):
        resume_admission(admission=way_of(gentle), by=bob, now=NOW)


def test_pages_and_explain_show_the_admission_and_a_person_controls_it(
    gentle: Pipe, store: LedgerStore, client: Client, bob: User
):
    save(store, held(gentle, 0, 90))
    advance_admissions(NOW, POLICY)
    advance_admissions(NOW + timedelta(seconds=1), POLICY)
    client.force_login(bob)
    page = client.get(f"/pipes/{gentle.id}/").content.decode()
    assert "Gradual admission by key: 20 % of its keys are admitted until 12:00:40 UTC" in page
    assert (
        "The pipe is being admitted gradually: 20 % of the keys are processed now"
        in client.get(f"/pipes/{gentle.id}/held/").content.decode()
    )
    assert "it is admitted gradually: 20 % of its keys are admitted until 12:00:40 UTC" in explain(gentle.id, NOW)
    answer = client.get(f"/api/v1/pipes/{gentle.id}/admission/").json()
    assert (answer["share"], answer["expected_per_s"], answer["held"]) == (20, 2_000, 1)
    assert client.get(f"/api/v1/pipes/{gentle.id}/").json()["admitted"] == 20
    client.post(f"/pipes/{gentle.id}/admission/hold/")
    assert way_of(gentle).held_by == bob
    client.post(f"/pipes/{gentle.id}/admission/resume/")
    assert way_of(gentle).held_at is None


def test_api_declares_and_controls_an_admission(tenant: Tenant, alice: User, a_spec: MakeSpec, client: Client):
    client.force_login(alice)
    body = {"name": "much", "spec": a_spec(), "expected_per_s": 9_000}
    made = client.post("/api/v1/pipes/", body, content_type="application/json").json()
    assert made["admitted"] == 20
    base = f"/api/v1/pipes/{made['id']}/admission/"
    assert client.post(f"{base}hold/").json()["held_by"] == "alice"
    assert client.post(f"{base}resume/").json()["held_at"] is None
    Admission.objects.update(ended_at=NOW)
    assert client.post(f"{base}hold/").json()["code"] == "admission-over"
    plain = client.post("/api/v1/pipes/", body | {"name": "few", "expected_per_s": 0}, content_type="application/json")
    assert plain.json()["admitted"] == 100
    assert client.get(f"/api/v1/pipes/{plain.json()['id']}/admission/").status_code == 404
