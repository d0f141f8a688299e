"""A pipe with a hot partition alerts within a minute, with its key and figures, and resolves once it is even again."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from pyroaring import BitMap64

from controlplane.observer.hot_partitions import watch_partitions
from controlplane.observer.notices import notification_text, send_due
from dataplane.ledger.units import partition_base
from mgmt.alerts.hot_partitions import HotPartitionPolicy
from mgmt.cells.policies import cell_master
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.ledger.queries.heavy_keys import HeavyKey
from mgmt.ledger.queries.partition_counts import busiest_pipes
from mgmt.messages.queries.records import RecordUnavailableError
from mgmt.models import (
    Admission,
    Alert,
    CapacityResult,
    Cell,
    FactRow,
    Lease,
    Notification,
    PartitionWatch,
    Pipe,
    PipeMigration,
    SettledOffset,
    Tenant,
    Topic,
    User,
)
from mgmt.services import adopt_live_spec, create_pipe
from tests.db.cast import MakeClient
from tests.db.channels import add_active_channel
from tests.db.console.truth import go_live

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 1, 1, 12, 0, 5, tzinfo=UTC)
CHECK = timedelta(seconds=10)
POLICY = HotPartitionPolicy(lane_per_s=1_000)
TOPIC = "penstock.c1.ingest.g1"
EVEN = (100, 100, 100, 100)
HOT = (1_000, 7_000, 1_000, 1_000)  # of 1,000 events per second, in ten seconds
DESTINATIONS = {"crm": {"type": "http", "url": "https://crm.example.com/in"}}


class Traffic:
    """Events of a pipe on four partitions, stored as the Observer does, and the checks between them."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe, self.now = pipe, NOW
        self.ends = [0, 0, 0, 0]
        self.watch()

    def take(self, counts: Sequence[int], *, settled: bool = True) -> int:
        """Store the events of ten seconds and check; return the number of pipes with an alert."""
        self.now += CHECK
        bucket = bucket_at(self.now)
        row = FactRow.objects.filter(pipe_id=self.pipe.id, bucket=bucket).first()
        positions = BitMap64.deserialize(bytes(row.positions)) if row else BitMap64()
        for partition, count in enumerate(counts):
            base = partition_base(1, partition) + self.ends[partition]
            positions.add_range(base, base + count)
            self.ends[partition] += count
            if settled:
                SettledOffset.objects.update_or_create(
                    topic=TOPIC, partition=partition, defaults={"offset": self.ends[partition]}
                )
        key = {"pipe_id": self.pipe.id, "bucket": bucket, "node": "ingest", "fact": "sent", "detail": "acked"}
        FactRow.objects.filter(**key).delete()
        FactRow.objects.create(**key, audit_partition=0, positions=positions.serialize(), count=len(positions))
        return self.watch()

    def watch(self) -> int:
        return watch_partitions(self.now, POLICY)


def keyed(tenant: Tenant, alice: User, **source: Any) -> Pipe:
    """Return a live pipe whose source has a key, on a cell with four partitions."""
    spec = {"sources": {"shop": {"key": "customer.email", **source}}, "destinations": DESTINATIONS}
    pipe = create_pipe(tenant=tenant, name="orders by customer", spec=spec, author=alice)
    go_live(pipe)
    Topic.objects.filter(cell_id="c1").update(partitions=4)
    pipe.refresh_from_db()
    return pipe


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> list[HeavyKey]:
    """Heavy keys of the hot partition, which a test may change."""
    found = [HeavyKey("ann.example@example.com", 0.86)]
    monkeypatch.setattr("controlplane.observer.hot_partitions.newest_heavy_keys", lambda *_: found)
    return found


@pytest.fixture
def traffic(tenant: Tenant, alice: User, keys: list[HeavyKey]) -> Traffic:
    add_active_channel(tenant=tenant, kind="mail", target="alice@example.com")
    return Traffic(keyed(tenant, alice))


def causes() -> list[str]:
    return list(Alert.objects.exclude(state="resolved").values_list("cause", flat=True))


def test_hot_partition_alerts_within_a_minute_with_key_share_and_lag(
    traffic: Traffic, client_of: MakeClient, alice: User
):
    traffic.take([2_500] * 4)
    began = traffic.now
    found = [traffic.take(HOT, settled=False) for _ in range(4)]
    assert found[-1] == 1
    alert = Alert.objects.get()
    assert (alert.cause, alert.destination, alert.state) == ("hot-partition", "", "opened")
    assert alert.opened_at - began <= timedelta(seconds=40)
    assert alert.count == 28_000
    assert alert.details == {
        "partition": 1, "share_percent": 70.0, "fair_percent": 25.0, "per_s": 700.0, "lag": 28_000,
        "keys": [{"key": "ann.example@example.com", "share_percent": 86.0}], "keys_unknown": "",
    }  # fmt: skip
    send_due(alert.opened_at + timedelta(seconds=11))
    (sent,) = mail.outbox
    assert sent.subject == "[Penstock] One partition of orders by customer receives too many events"
    for text in ("Partition 1 of orders by customer receives 70.0 % of the events", "28000 messages wait on it",
                 "ann.example@example.com: 86.0 % of the partition"):  # fmt: skip
        assert text in sent.body
    assert notification_text(Notification.objects.get())["details"] == alert.details
    path = f"/api/v1/pipes/{traffic.pipe.id}/alerts/{alert.id}/"
    assert client_of(alice).get(path).json()["details"] == alert.details


def test_figures_are_updated_and_the_alert_ends_after_five_even_minutes(traffic: Traffic):
    for _ in range(5):
        traffic.take(HOT)
    assert causes() == ["hot-partition"]
    traffic.take((500, 9_000, 250, 250))
    assert Alert.objects.get().details["share_percent"] == 90.0
    assert [traffic.take([2_500] * 4) for _ in range(30)] == [1] * 30
    assert traffic.take([2_500] * 4) == 0
    alert = Alert.objects.get()
    assert (alert.state, alert.resolution) == ("resolved", "no partition is overloaded any more")


def test_uniform_small_and_brief_traffic_never_alerts(traffic: Traffic):
    for _ in range(4):
        traffic.take([2_500] * 4, settled=False)  # the lanes are behind, on all partitions
    for _ in range(3):
        traffic.take((0, 90, 0, 0), settled=False)
    for counts in (HOT, HOT, [2_500] * 4, HOT, HOT, [2_500] * 4):  # each time shorter than 20 seconds
        traffic.take(counts)
    assert causes() == []


def test_uneven_traffic_that_does_no_harm_never_alerts(traffic: Traffic):
    for _ in range(6):
        traffic.take((100, 700, 100, 100))  # 70 events per second, and no lag
    assert causes() == []


def test_capacity_test_of_the_cell_measures_what_a_lane_sustains(traffic: Traffic, alice: User):
    CapacityResult.objects.create(
        cell_id="c1", master=cell_master(), group="process", units=1, per_s=5_000, at_least=False, cpu_us=20, batch=100,
        bottleneck="", at=NOW, by=alice,
    )  # fmt: skip
    for _ in range(6):
        traffic.take(HOT)
    assert causes() == []


@pytest.mark.parametrize("source", [{"key": None}, {"spread_key": True}], ids=["without keys", "with spread keys"])
def test_pipe_whose_events_share_no_partition_by_key_never_alerts(
    source: dict[str, Any], tenant: Tenant, alice: User, keys: list[HeavyKey]
):
    traffic = Traffic(keyed(tenant, alice, **source))
    for _ in range(5):
        traffic.take(HOT, settled=False)
    assert causes() == []
    assert not PartitionWatch.objects.exists()


@pytest.mark.parametrize("change", ["scaling", "rollout", "migration", "admission"])
def test_nothing_opens_while_pipe_or_cell_change(change: str, traffic: Traffic):
    cell, pipe = Cell.objects.get(id="c1"), traffic.pipe
    if change in ("scaling", "rollout"):
        holder = "scale" if change == "scaling" else "deploy"
        Lease.objects.create(cell=cell, holder=holder, taken_at=NOW, until=NOW + timedelta(hours=1))
    elif change == "migration":
        other = Cell.objects.create(id="c2")
        PipeMigration.objects.create(pipe=pipe, source=cell, target=other, reason="test", asked_at=NOW)
    else:
        Admission.objects.create(pipe=pipe, share=20, expected_per_s=1_000)
    for _ in range(6):
        traffic.take(HOT, settled=False)
    assert causes() == []
    Lease.objects.all().delete()
    PipeMigration.objects.all().delete()
    Admission.objects.all().delete()
    for _ in range(3):
        traffic.take(HOT, settled=False)
    assert causes() == ["hot-partition"]


def test_partition_that_no_key_explains_opens_no_alert(traffic: Traffic, keys: list[HeavyKey]):
    keys.clear()
    for _ in range(6):
        traffic.take(HOT)
    assert causes() == []


def test_alert_says_why_keys_are_unknown_and_names_them_once_they_can_be_read(
    traffic: Traffic, monkeypatch: pytest.MonkeyPatch
):
    def away(*_: object) -> list[HeavyKey]:
        raise RecordUnavailableError("the brokers do not respond")

    with monkeypatch.context() as patch:
        patch.setattr("controlplane.observer.hot_partitions.newest_heavy_keys", away)
        for _ in range(4):
            traffic.take(HOT)
        assert Alert.objects.get().details["keys_unknown"] == "the brokers do not respond"
    traffic.take(HOT)
    assert Alert.objects.get().details["keys"] == [{"key": "ann.example@example.com", "share_percent": 86.0}]


def test_key_that_the_pipe_masks_is_masked_in_the_alert(tenant: Tenant, alice: User, keys: list[HeavyKey]):
    pipe = keyed(tenant, alice)
    revision = pipe.revisions.get()
    masked = revision.spec | {"normalize": [{"op": "mask", "path": "customer.email", "how": "partial"}]}
    type(revision).objects.bulk_create(
        [type(revision)(pipe=pipe, number=2, spec=masked, author=alice, state="ramping")]
    )
    adopt_live_spec(revision=pipe.revisions.get(number=2))
    traffic = Traffic(pipe)
    for _ in range(4):
        traffic.take(HOT)
    assert Alert.objects.get().details["keys"] == [{"key": "***.com", "share_percent": 86.0}]


def test_alert_of_a_paused_pipe_is_resolved(traffic: Traffic):
    for _ in range(4):
        traffic.take(HOT)
    Pipe.objects.update(state="paused")
    assert traffic.take(HOT) == 0
    assert Alert.objects.get().resolution == "the pipe is paused or closed"


def test_check_needs_one_query_for_each_busy_pipe(
    traffic: Traffic, tenant: Tenant, alice: User, django_assert_max_num_queries: Any
):
    for number in range(5):
        other = create_pipe(
            tenant=tenant, name=f"p{number}", author=alice,
            spec={"sources": {"shop": {"key": "id"}}, "destinations": DESTINATIONS},
        )  # fmt: skip
        go_live(other)
        FactRow.objects.create(
            pipe_id=other.id, bucket=bucket_at(NOW), node="ingest", fact="sent", detail="acked", audit_partition=0,
            positions=BitMap64(range(partition_base(1, 0), partition_base(1, 0) + 500)).serialize(), count=500,
        )  # fmt: skip
    with django_assert_max_num_queries(12 + 5):
        traffic.watch()
    assert PartitionWatch.objects.count() == 5


def test_replay_takes_no_place_among_the_busiest_pipes(traffic: Traffic):
    traffic.take(EVEN)
    bucket = bucket_at(traffic.now)
    events = {"bucket": bucket, "node": "ingest", "fact": "sent", "detail": "acked", "audit_partition": 0}
    FactRow.objects.create(pipe_id="replay_1", positions=b"", count=1_000_000, **events)
    assert busiest_pipes(bucket, least=1, most=1) == [traffic.pipe.id]
