"""The plan preview shows what the Provisioner will create; it creates nothing and loses no input."""

import html
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings
from pytest_django.fixtures import DjangoAssertNumQueries

from controlplane.provisioner.act import output_plans
from controlplane.provisioner.decide import PlacePipe, decide
from controlplane.provisioner.records import desired_records
from controlplane.settings import control_settings
from dataplane.names import PURPOSES
from dataplane.spec import parse_pipe_spec
from dataplane.tables.records import destination_key
from mgmt.cells.placement import PlacementPolicy, shard_of
from mgmt.cells.policies import cell_master
from mgmt.cells.queries.placement_inputs import placement_inputs
from mgmt.cells.services.capacity_tests import store_capacity_results
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Admission, CapacityResult, Cell, Pipe, ScaleGroup, Tenant, Topic, Usage, User
from mgmt.pipes.queries.plan_preview import PIPE_TO_COME, PlanPreview, plan_preview
from mgmt.pipes.topics import cell_plans
from mgmt.ramps.schedule import first_share
from mgmt.services import create_pipe, publish_revision
from tests.db.cast import MakeSpec
from tests.db.channels import add_active_channel
from tests.db.console.truth import Truth, go_live
from tests.db.provisioning import snapshot

pytestmark = pytest.mark.django_db
NEW = "/pipes/new/"
NOW = datetime(2026, 11, 21, 12, 0, 10, tzinfo=UTC)
FORM: dict[str, Any] = {
    "mode": "form",
    "action": "plan",
    "name": "orders",
    "source.name": "web",
    "normalize.op": ["rename", "remove"],
    "normalize.a": ["total", "secret"],
    "normalize.b": ["amount", ""],
    "destination.name": ["main", "kept"],
    "destination.kind": ["http", "topic"],
    "destination.url": ["https://main.example.com/in", ""],
    "sample": '{"total": 150}',
}
PLAN_QUERIES = 27


def plan(tenant: Tenant, spec: dict[str, Any], pipe: Pipe | None = None, now: datetime = NOW) -> PlanPreview:
    return plan_preview(tenant=tenant, spec=parse_pipe_spec(spec), pipe=pipe, now=now)


def hidden(page: str) -> dict[str, list[str]]:
    """Return the hidden fields that carry the form through the page."""
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', page):
        found.setdefault(name, []).append(html.unescape(value))
    return {name: values for name, values in found.items() if name != "csrfmiddlewaretoken"}


@pytest.mark.parametrize("load", [{"c1": 0}, {"c1": 2, "c2": 1}, {"c1": 1, "c2": 1, "c3": 1}])
def test_planned_cell_is_the_one_that_the_provisioner_chooses(
    tenant: Tenant, alice: User, a_spec: MakeSpec, load: dict[str, int]
):
    Cell.objects.all().delete()
    for cell, pipes in load.items():
        Cell.objects.create(id=cell)
        for number in range(pipes):
            there = create_pipe(tenant=tenant, name=f"{cell} {number}", spec=a_spec(), author=alice)
            Pipe.objects.filter(id=there.id).update(cell=cell)
    told = plan(tenant, a_spec()).placing
    made = create_pipe(tenant=tenant, name="the next", spec=a_spec(), author=alice)
    assert PlacePipe(made.id, told.cell, "pipes") in decide(snapshot(now=NOW))
    assert told.load == {cell: load[cell] for cell in shard_of(tenant.id, load, 2)}


def rated(tenant: Tenant, alice: User, spec: dict[str, Any], cores: dict[str, float], now: datetime = NOW) -> None:
    """Create cells with one core per lane kind, and on each a pipe that recently used `cores` of it."""
    Cell.objects.all().delete()
    groups = [
        {"group": kind, "units": 1, "per_s": 1_000.0, "at_least": True, "cpu_us": 1_000.0}
        for kind in ("process", "transmit")
    ]
    for name, used in cores.items():
        cell = Cell.objects.create(id=name)
        there = create_pipe(tenant=tenant, name=f"on {name}", spec=spec, author=alice)
        Pipe.objects.filter(id=there.id).update(cell=cell)
        for kind in ("process", "transmit"):
            ScaleGroup.objects.create(cell=cell, kind=kind, maximum=1)
            busiest = round(used / PlacementPolicy().peak * 86_400 * 1_000_000)
            days = [(now - timedelta(days=2), busiest), (now - timedelta(days=3), busiest // 2)]
            for day, cpu_us in days:
                amount = {"units": 1, "size_bytes": 1, "cpu_us": cpu_us}
                Usage.objects.create(pipe=there, day=day.date(), cell=name, kind=kind, **amount)
    store_capacity_results(cell=cell, master=cell_master(), rated=groups, bottleneck="", batch=1, by=alice, now=now)


@pytest.mark.parametrize(
    ("cores", "by", "says"),
    [
        ({"c1": 0.1, "c2": 0.2}, "room", "which has the most free capacity"),
        ({"c1": 0.4, "c2": 0.3}, "room", "which has the most free capacity"),
        ({"c1": 0.6, "c2": 0.9}, "full", "which has the lowest load, although no cell has free capacity"),
    ],
)
def test_plan_and_provisioner_place_by_free_capacity_on_measured_cells(
    alices: Client, tenant: Tenant, alice: User, a_spec: MakeSpec, cores: dict[str, float], by: str, says: str
):
    now = datetime.now(UTC)  # the page's
    rated(tenant, alice, a_spec(), cores, now)
    told = plan(tenant, a_spec(), now=now).placing
    made = create_pipe(tenant=tenant, name="the next", spec=a_spec(), author=alice)
    assert PlacePipe(made.id, told.cell, by) in decide(snapshot(now=now))
    assert told.cell == min(cores, key=cores.__getitem__)
    assert says in alices.post(NEW, FORM).content.decode() or by == "room"


def test_pipe_needs_its_busiest_days_mean_and_a_new_pipe_the_usual_need_of_its_tenant(
    tenant: Tenant, alice: User, a_spec: MakeSpec
):
    rated(tenant, alice, a_spec(), {"c1": 0.1, "c2": 0.3})
    idle, closed = (create_pipe(tenant=tenant, name=name, spec=a_spec(), author=alice) for name in ("idle", "closed"))
    Pipe.objects.filter(id__in=[idle.id, closed.id]).update(cell="c1", created_at=NOW - timedelta(days=2))
    Pipe.objects.filter(id=closed.id).update(state=Pipe.State.CLOSED)
    room = placement_inputs([("next", tenant.id)], PlacementPolicy(), NOW)
    assert [(cell.id, cell.pipes) for cell in room.cells] == [("c1", 2), ("c2", 1)]
    assert [round(cell.used["process"], 3) for cell in room.cells] == [0.1, 0.3]
    assert [dict(cell.capacity) for cell in room.cells] == [{"process": 1.0, "transmit": 1.0}] * 2
    assert round(room.pipes[0].need["process"], 3) == 0.2
    Pipe.objects.filter(id=idle.id).update(created_at=NOW - timedelta(hours=2))
    young = placement_inputs([], PlacementPolicy(), NOW).cells[0]
    assert round(young.used["process"], 3) == 0.3


def test_capacity_result_of_another_spark_master_is_ignored(tenant: Tenant, alice: User, a_spec: MakeSpec):
    rated(tenant, alice, a_spec(), {"c1": 0.1})
    CapacityResult.objects.update(master="k8s://elsewhere")
    assert placement_inputs([], PlacementPolicy(), NOW).cells[0].capacity == {}


def test_plan_without_a_cell_says_that_the_pipe_waits(alices: Client, tenant: Tenant):
    Cell.objects.all().delete()
    assert "the pipe waits until the operator adds one" in alices.post(NEW, FORM).content.decode()


def test_planned_topics_are_those_that_the_provisioner_creates(tenant: Tenant, alice: User, a_spec: MakeSpec):
    Cell.objects.get_or_create(id="c1")
    spec = a_spec() | {"destinations": {"kept": {"type": "topic", "partitions": 7}}}
    told, shape = plan(tenant, spec), control_settings().topics
    wanted = {one.name: (one.partitions, one.replication) for one in cell_plans("c1", 1, shape).values()}
    assert {one.name: (one.partitions, one.replicas) for one in told.topics} == wanted
    assert told.to_make == len(PURPOSES)
    pipe = create_pipe(tenant=tenant, name="orders", spec=spec, author=alice)
    (made,) = output_plans(desired_records([destination_key(pipe.id, "kept")]).records, shape)
    (own,) = told.outputs
    assert own.name.replace(PIPE_TO_COME, pipe.id.replace("_", "-")) == made.name
    assert (own.partitions, own.replicas, own.exists) == (7, made.replication, False)


def test_existing_topics_are_marked_as_existing(tenant: Tenant, pipe: Pipe, a_spec: MakeSpec):
    go_live(pipe)
    there = {topic.name for topic in plan(tenant, a_spec()).topics if topic.exists}
    assert there == set(Topic.objects.filter(cell="c1").values_list("name", flat=True))
    assert there


@pytest.mark.parametrize("taken", [0, 3, 500, 50_000])
def test_planned_ramp_is_the_one_that_the_provisioner_begins(
    tenant: Tenant, alice: User, pipe: Pipe, a_spec: MakeSpec, taken: int
):
    go_live(pipe)
    if taken:
        Truth(pipe).fact(bucket_at(NOW), "ingest", "sent", [*range(taken)], "acked")
    pipe.refresh_from_db()
    told = plan(tenant, a_spec(), pipe).ramp
    publish_revision(pipe=pipe, spec=a_spec(), based_on=1, author=alice)
    assert (told.shares[0] if told.shares else 0) == first_step(pipe)
    assert told.recent == taken


def first_step(pipe: Pipe) -> int:
    """Return the share with which the Provisioner starts the requested revision."""
    seen = snapshot(now=NOW)
    return first_share(seen.policy, seen.recently_ramped.get(pipe.id, 0))


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ({}, []),
        ({"dedup": {"paths": ["id"]}}, ["dedup"]),
        ({"destinations": {"lake": {"type": "lake"}}}, ["lake"]),
        ({"execution": "bulk"}, ["bulk execution"]),
    ],
    ids=["none", "dedup", "lake", "bulk"],
)
def test_queries_run_only_if_needed(tenant: Tenant, a_spec: MakeSpec, more: dict[str, Any], asked: list[str]):
    assert plan(tenant, a_spec() | more).asked_queries == asked


def test_plan_page_shows_everything_and_creates_nothing(alices: Client, tenant: Tenant, settings: Settings):
    Cell.objects.get_or_create(id="c1")
    add_active_channel(tenant=tenant, kind="mail", target="ops@example.com")
    page = alices.post(NEW, FORM).content.decode()
    for words in (
        "which has the fewest pipes",
        "1 process",
        "None. Queries for dedup, windows, lake, sequence or bulk execution",
        "penstock.out.&lt;id&gt;.kept",
        "Immediately for all keys",
        "1, shown once on the next page: web",
        "1, shown once on the next page: main",
        "quotas apply",
        "ops@example.com",
        "Create pipe",
    ):
        assert words in page, words
    assert not Pipe.objects.exists()


def test_plan_shows_no_alert_channel_until_there_is_one(alices: Client, tenant: Tenant):
    assert "No channels yet." in alices.post(NEW, FORM).content.decode()


def test_author_of_the_first_pipe_is_offered_alerts_by_email(alices: Client, tenant: Tenant, alice: User):
    User.objects.filter(id=alice.id).update(email="alice@example.com")
    page = alices.post(NEW, FORM).content.decode()
    assert 'value="alice@example.com"' in page
    carried = hidden(page) | {"action": "save"}
    assert "tell" not in carried, "a return to the editor requests no alerts"
    refused = alices.post(NEW, carried | {"tell": "alice at home"})
    assert (refused.status_code, Pipe.objects.count()) == (422, 0)
    assert "needs an e-mail address. Nothing has been created yet." in refused.content.decode()
    assert "orders created" in alices.post(NEW, carried | {"tell": "alice@example.com"}).content.decode()
    assert [channel.target for channel in tenant.alert_channels.all()] == ["alice@example.com"]
    assert "Send alerts to" not in alices.post(NEW, FORM | {"name": ["second"]}).content.decode()


@pytest.mark.parametrize(("said", "share"), [("", None), ("500", None), ("501", 20)])
def test_high_expected_traffic_is_admitted_by_shares(alices: Client, tenant: Tenant, said: str, share: int | None):
    page = alices.post(NEW, FORM).content.decode()
    assert "Above 500, traffic is admitted gradually: 20 → 50 → 100 % of the keys" in page
    assert "orders created" in alices.post(NEW, hidden(page) | {"action": "save", "expected": said}).content.decode()
    assert Admission.objects.values_list("share", flat=True).first() == share


@pytest.mark.parametrize("said", ["many", "-1", "1000001", "9" * 5_000])
def test_invalid_expected_rate_creates_nothing(alices: Client, tenant: Tenant, said: str):
    carried = hidden(alices.post(NEW, FORM).content.decode())
    refused = alices.post(NEW, carried | {"action": "save", "expected": said})
    assert (refused.status_code, Pipe.objects.count()) == (422, 0)
    assert "Enter a whole number from 0 to 1000000. Nothing has been created yet." in refused.content.decode()


def test_pipe_is_created_from_the_plan_as_typed(alices: Client, tenant: Tenant):
    carried = hidden(alices.post(NEW, FORM).content.decode())
    assert {name: carried[name] for name in ("name", "normalize.op", "destination.url")} == {
        "name": ["orders"],
        "normalize.op": ["rename", "remove"],
        "destination.url": ["https://main.example.com/in", ""],
    }
    made = alices.post(NEW, carried | {"action": "save"}).content.decode()
    assert "orders created" in made
    assert made.count("Signing secret of destination") == 1, "a topic destination has no signing secret"
    assert [step["op"] for step in Pipe.objects.get().revisions.get().spec["normalize"]] == ["rename", "remove"]


def test_return_to_the_editor_keeps_the_input(alices: Client, tenant: Tenant):
    carried = hidden(alices.post(NEW, FORM).content.decode())
    page = alices.post(NEW, carried | {"action": "redraw"}).content.decode()
    assert 'value="https://main.example.com/in"' in page
    assert "{&quot;total&quot;: 150}" in page


@pytest.mark.parametrize(
    ("changed", "field", "words"),
    [
        ({"name": ""}, "name", "Enter a name"),
        ({"destination.url": ["", ""]}, "destination-0-url", "Enter a URL"),
        ({"normalize.b": ["", ""]}, "normalize-0-to", "Enter a path"),
    ],
)
def test_invalid_pipe_has_no_plan(alices: Client, tenant: Tenant, changed: dict[str, Any], field: str, words: str):
    answer = alices.post(NEW, FORM | changed)
    assert answer.status_code == 422
    assert words in re.findall(rf'id="{field}-error"[^>]*>([^<]*)<', answer.content.decode())[0]


def test_taken_name_is_refused_before_the_plan(alices: Client, pipe: Pipe):
    answer = alices.post(NEW, FORM)
    assert answer.status_code == 422
    assert "Choose another name" in answer.content.decode()


def test_next_revision_has_a_plan(alices: Client, pipe: Pipe):
    go_live(pipe)
    url = reverse("console:edit_pipe", args=[pipe.id])
    page = alices.post(url, FORM | {"based_on": "1"}).content.decode()
    assert "<strong>c1</strong>, where the pipe already runs" in page
    assert "received 0 messages in the last 1" in page
    assert "Publish revision 2" in page
    answer = alices.post(url, hidden(page) | {"action": "save"})
    assert answer.status_code == 302
    assert pipe.revisions.count() == 2


def test_plan_has_a_constant_query_count_for_one_cell_and_ten(
    alices: Client, tenant: Tenant, django_assert_num_queries: DjangoAssertNumQueries
):
    Cell.objects.get_or_create(id="c1")
    alices.post(NEW, FORM)
    for number in range(10):
        with django_assert_num_queries(PLAN_QUERIES):
            alices.post(NEW, FORM)
        Cell.objects.get_or_create(id=f"more-{number}")


def test_plan_says_which_destinations_get_earlier_events(tenant: Tenant, alice: User, a_spec: MakeSpec):
    def beginnings(pipe: Pipe | None) -> list[tuple[str, bool]]:
        return [(one.name, one.is_new) for one in plan(tenant, spec, pipe).beginnings]

    spec = a_spec()
    pipe = create_pipe(tenant=tenant, name="orders", spec=spec, author=alice)
    spec["destinations"]["crm"]["from"] = "earliest"
    spec["destinations"]["feed"] = {"type": "topic", "from": "earliest"}
    assert beginnings(None) == beginnings(pipe) == [("crm", False), ("feed", False)], "nothing is live"
    go_live(pipe)
    assert beginnings(pipe) == [("crm", False), ("feed", True)]


def test_page_of_the_plan_says_what_a_beginning_does(alices: Client, tenant: Tenant):
    page = alices.post(NEW, FORM | {"destination.beginning": ["", "earliest"]}).content.decode()
    assert "<strong>kept</strong> starts with the first event: a new pipe has no earlier ones." in page
