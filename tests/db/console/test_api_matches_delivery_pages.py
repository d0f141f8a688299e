"""Numbers of attempts, undelivered messages, pipes, usage and revisions are the same on the pages and in the API."""

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from mgmt.models import DeliveryAttempt, Destination, LaneSignal, Pipe, PipeRevision, Tenant, Usage, User
from mgmt.services import create_pipe, publish_revision
from tests.db.cast import MakeSpec
from tests.db.console.truth import Truth, exported, go_live
from tests.db.console.undelivered import open_alert, store_dead, store_held

pytestmark = pytest.mark.django_db


@pytest.fixture
def base(truth: Truth) -> str:
    return f"/api/v1/pipes/{truth.pipe.id}"


@pytest.fixture
def home(truth: Truth) -> str:
    return f"/api/v1/tenants/{truth.pipe.tenant_id}"


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("query", "page_query"),
    [
        ({}, {}),
        ({"outcome": "dead"}, {"outcome": "dead"}),
        ({"cause": "timeout"}, {"cause": "timeout"}),
        ({"destination": "crm"}, {"destination": "crm"}),
        ({"destination": "nobody"}, {"destination": "nobody"}),
    ],
)
def test_attempts_are_those_of_the_page(
    alices: Client, api: APIClient, truth: Truth, base: str, query: dict[str, str], page_query: dict[str, str]
):
    page = exported(alices, reverse("console:attempts", args=[truth.pipe.id]), **page_query)
    found = api.get(f"{base}/attempts/", query).json()["results"]
    columns = ("message_id", "position", "destination", "revision", "number", "outcome", "status", "reason", "total_us")
    assert [[one[name] for name in columns] for one in found] == [[one[name] for name in columns] for one in page]
    assert [moment(one["at"]) for one in found] == [moment(one["at"]) for one in page]
    phases = [" ".join(f"{name.replace(' ', '_')}={us}" for name, us in one["phases_us"].items()) for one in found]
    assert phases == [one["split"] for one in page]
    assert len(found) == {"dead": 1, "timeout": 1, "nobody": 0}.get("".join(query.values()), 3)


def test_attempts_are_found_by_message_status_and_time(api: APIClient, truth: Truth, base: str, bucket: int):
    row = DeliveryAttempt.objects.get(outcome="dead")
    truth.attempt(bucket - 10, 30, "retry", status=500, reason="server-error")
    minute = quote((row.at - timedelta(minutes=1)).isoformat())

    def count(query: str) -> int:
        return len(api.get(f"{base}/attempts/?{query}").json()["results"])

    assert [count(f"message_id={row.message_id}"), count("status=401"), count("status=0"), count("status=500")] == [
        1
    ] * 4
    assert [count(f"since={minute}"), count(f"until={minute}")] == [3, 1]


def test_pages_of_attempts_have_no_gap_though_their_times_are_equal(
    api: APIClient, truth: Truth, base: str, bucket: int
):
    for offset in range(40, 45):
        truth.attempt(bucket, offset, "retry", status=500)
    seen, url = [], f"{base}/attempts/?limit=3"
    while url:
        page = api.get(url).json()
        seen += [one["id"] for one in page["results"]]
        url = page["next"]
    assert seen == list(DeliveryAttempt.objects.order_by("-at", "-id").values_list("id", flat=True))
    assert len(seen) == 8


def test_undelivered_messages_are_those_of_the_home_page(alices: Client, api: APIClient, base: str, home: str):
    page = alices.get("/").context
    lines, total = page["get_troubles"](), page["get_trouble_sum"]()
    for url in (f"{home}/undelivered/", f"{base}/undelivered/"):
        found = api.get(url).json()
        assert (found["messages"], moment(found["since"])) == (total["messages"], total["since"])
        assert (found["causes"], found["needs_you"]) == (2, 1)
        assert [(one["bin"], one["count"], one["summary"], one["next_step"]) for one in found["results"]] == [
            (line.fact.bin, line.fact.count, line.words, line.todo) for line in lines
        ]
    assert [one["bin"] for one in api.get(f"{home}/undelivered/?limit=1").json()["results"]] == [lines[0].fact.bin]


def test_pipes_with_their_figures_are_those_of_the_home_page(
    alices: Client, api: APIClient, truth: Truth, home: str, tenant: Tenant, alice: User, a_spec: MakeSpec, bucket: int
):
    other = create_pipe(tenant=tenant, name="a new one", spec=a_spec(), author=alice)
    truth.seal(bucket - 30, accepted=9, lost=2)
    page = {row["pipe"]: row for row in exported(alices, "/")}
    found = {row["pipe"]: row for row in api.get(f"{home}/pipes/").json()["results"]}
    assert list(found) == [other.id, truth.pipe.id]
    assert found.keys() == page.keys()
    for name, row in found.items():
        columns = ("name", "state", "revision", "lag_p95_us", "delivered", "causes", "needs_you")
        assert {column: row[column] for column in columns} == {column: page[name][column] for column in columns}
        assert row["lost"] == page[name]["lost_sealed"]
    assert (found[truth.pipe.id]["lost"], found[truth.pipe.id]["delivered"]) == (2, 14)


def test_counts_of_dead_letters_and_held_messages_are_those_of_their_pages(
    alices: Client, api: APIClient, truth: Truth, base: str, now: datetime
):
    pipe = truth.pipe
    store_dead(pipe, range(100, 120), now)
    store_dead(pipe, range(120, 123), now, cause="expired")
    store_dead(pipe, range(123, 125), now, cause="step", where="")
    store_held(pipe, range(7), now)
    store_held(pipe, range(7, 11), now, where="")
    heaps = alices.get(reverse("console:dead", args=[pipe.id])).context["get_heaps"]()
    held = alices.get(reverse("console:held", args=[pipe.id])).context
    found = api.get(f"{base}/waiting/").json()
    assert (found["dead"], found["held"]) == (26, 11)
    by_kind: dict[str, list[Any]] = {"dead": [], "held": []}
    for one in found["results"]:
        by_kind[one["kind"]].append((one["destination"], one["cause"], one["count"]))
    assert sorted(by_kind["dead"]) == sorted(
        (heap.fact.destination, heap.fact.cause, heap.fact.count) for heap in heaps
    )
    of_page = [(line.row.name, "", line.fact.held) for line in held["get_held"]()]
    assert sorted(by_kind["held"]) == sorted([*of_page, ("", "", held["get_entrance"]().count)])


def test_state_of_a_destination_is_that_of_its_page(
    alices: Client, api: APIClient, truth: Truth, base: str, now: datetime
):
    store_held(truth.pipe, range(7), now)
    until = now + timedelta(seconds=40)
    LaneSignal.objects.create(
        pipe_id=truth.pipe.id, destination="crm", writer="transmit-1", at=now, breaker="open", until=until, reason="x"
    )
    page = alices.get(reverse("console:destination", args=[truth.pipe.id, "crm"])).context
    found = api.get(f"{base}/destinations/crm/state/").json()
    breaker = page["get_breaker"]()
    assert {**found["breaker"], "until": moment(found["breaker"]["until"])} == {
        "state": breaker.state, "until": breaker.until, "reason": breaker.reason, "slow_lane": breaker.slow,
    }  # fmt: skip
    assert (breaker.state, breaker.until) == ("open", until)
    assert {name: count for name, count in found["bins"].items() if count} == {
        name: count for name, count in page["get_bins"]().items() if count
    }
    assert (found["held"], found["bins"]["dead"]) == (page["get_held"]().fact.held, 1) == (7, 1)


def test_summary_has_the_alerts_and_problems_of_the_tenant(
    alices: Client, api: APIClient, truth: Truth, home: str, now: datetime, bucket: int
):
    alert = open_alert(truth.pipe, now)
    truth.fact(bucket - 3, "ingest", "sent", [1, 2], "acked")
    truth.seal(bucket - 3, accepted=2, lost=2)
    Destination.objects.update(state="suspended", state_cause="rejected", state_since=now)
    found = api.get(f"{home}/summary/").json()
    assert found["unacknowledged_alerts"] == alices.get("/alerts/").context["get_opened"]() == 1
    assert [(one["id"], one["count"], one["state"]) for one in found["alerts"]] == [(alert.id, alert.count, "opened")]
    assert found["suspended"][0]["destination"] == "crm"
    assert (found["lost"], found["total"]) == ([{"pipe": truth.pipe.id, "lost": 2}], 3)


def test_members_are_listed_with_their_roles(api: APIClient, tenant: Tenant, viewer: User, client_of: Any):
    url = f"/api/v1/tenants/{tenant.id}/members/"
    expected = [("vera", "viewer"), ("bob", "editor"), ("alice", "owner")]
    for client in (api, client_of(viewer)):
        assert [(one["username"], one["role"]) for one in client.get(url).json()["results"]] == expected
    first = api.get(f"{url}?limit=2").json()
    assert [one["username"] for one in api.get(first["next"]).json()["results"]] == ["alice"]


def test_usage_of_a_tenant_is_that_of_its_page(
    alices: Client, api: APIClient, truth: Truth, home: str, tenant: Tenant, alice: User, a_spec: MakeSpec
):
    other = create_pipe(tenant=tenant, name="refunds", spec=a_spec(), author=alice)
    today = timezone.now().date()
    for pipe, cpu_us in ((truth.pipe, 3_000_000), (other, 9_000_000)):
        for day in (today, today - timedelta(days=2)):
            Usage.objects.create(pipe=pipe, day=day, cell="c1", kind="process", units=10, size_bytes=5, cpu_us=cpu_us)
    page = alices.get("/usage/").context
    found = api.get(f"{home}/usage/").json()
    total = page["get_total"]()
    assert {name: getattr(total, name) for name in found["total"]} == found["total"]
    assert found["total"]["cpu_us"] == 24_000_000
    assert [(one["day"], one["amount"]["runs"]) for one in found["days"]] == [
        (line.about.isoformat(), line.amount.runs) for line in page["get_days"]()
    ]
    assert [(one["pipe"], one["amount"]["cpu_us"], one["share"]) for one in found["pipes"]] == [
        (line.about.id, line.amount.cpu_us, line.share) for line in page["get_pipes"]()
    ]
    one = api.get(f"{home}/usage/?limit=1").json()
    assert ([line["name"] for line in one["pipes"]], one["more_pipes"]) == (["refunds"], 1)


def test_diff_of_a_revision_has_its_added_and_removed_lines(api: APIClient, pipe: Pipe, alice: User, a_spec: MakeSpec):
    changed = a_spec(crm="https://crm.example.com/v2/in")
    publish_revision(pipe=pipe, spec=changed, based_on=1, author=alice)
    PipeRevision.objects.create(pipe=pipe, number=3, spec=pipe.revisions.get(number=1).spec)
    base = f"/api/v1/pipes/{pipe.id}/revisions"
    found = api.get(f"{base}/2/diff/").json()
    changes = [(line["kind"], line["text"].strip(" ,")) for line in found["lines"] if line["kind"] != "same"]
    assert changes == [
        ("gone", '"url": "https://crm.example.com/in"'),
        ("new", '"url": "https://crm.example.com/v2/in"'),
    ]
    assert (found["number"], found["against"], found["added"], found["removed"]) == (2, 1, 1, 1)
    assert [api.get(f"{base}/3/diff/?against=1").json()[name] for name in ("added", "removed")] == [0, 0]
    first = api.get(f"{base}/1/diff/").json()
    assert (first["against"], first["removed"], first["added"]) == (None, 0, len(first["lines"]))
    assert api.get(f"{base}/2/diff/?against=9").status_code == 404


def test_journey_of_a_message_is_that_of_its_page(alices: Client, api: APIClient, truth: Truth, base: str, bucket: int):
    go_live(truth.pipe)
    for offset, bin_ in ((6, "delivered"), (7, "dead"), (8, "retrying"), (9, "lost")):
        query = {"minute": str(bucket)}
        page = alices.get(reverse("console:message", args=[truth.pipe.id, f"1-0-{offset}"]), query).context
        found = api.get(f"{base}/messages/1-0-{offset}/", query).json()
        assert (found["state"], found["message_id"]) == (page["words"], page["journey"].message_id)
        (leg,), (shown,) = found["destinations"], page["legs"]
        last_seen = (leg["last_seen"], leg["last_seen_words"])
        assert (leg["bin"], last_seen) == (shown.bin, shown.last_seen or ("", ""))
        assert leg["bin"] == bin_
        assert [one["id"] for one in leg["attempts"]] == [line.id for line in shown.leg.attempts]
        assert [(one["node"], one["fact"], one["detail"]) for one in leg["facts"]] == [
            (key.node, key.fact, key.detail) for key in shown.leg.facts
        ]
        assert found["unavailable"] == page["journey"].unavailable != ""
    assert api.get(f"{base}/messages/1-0-99/").status_code == 404


def test_search_without_brokers_is_unavailable_and_not_empty(api: APIClient, base: str, home: str):
    api.raise_request_exception = False
    for url in (f"{base}/messages/", f"{home}/messages/"):
        answer = api.get(url, {"q": "A-1001"})
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
        assert int(answer["Retry-After"]) > 0
