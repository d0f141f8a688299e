"""The loss table of a minute on its page, in its exports and in the API, and the outcomes at the seal and now."""

import csv
import io
import json
import re

import pytest
from django.test import Client

from mgmt.models import LateCount, Pipe, Seal, User
from tests.db.cast import MakeClient
from tests.db.console.truth import Truth, go_live

pytestmark = pytest.mark.django_db
MINUTE = 29_384_711
NODES = ["ingest", "normalize", "enrich", "route", "transform:crm", "transmit:crm"]


@pytest.fixture
def talk(pipe: Pipe) -> Truth:
    """Ten messages of which each hop loses one or two: five arrive, as in the talk's table."""
    go_live(pipe)
    truth = Truth(pipe)
    truth.moved(MINUTE, list(range(7)))
    truth.fact(MINUTE, "ingest", "sent", [7, 8, 9], "acked", partition=1)
    truth.fact(MINUTE, "process", "sent", [7, 8], partition=1)
    truth.fact(MINUTE, "transmit:crm", "delivered", list(range(5)))
    truth.passed(100)
    return truth


def test_minute_page_shows_which_message_was_last_seen_where(alices: Client, talk: Truth):
    page = alices.get(f"/pipes/{talk.pipe.id}/minutes/{MINUTE}/").content.decode()
    table = page.split('aria-label="Lost messages by node"')[1].split("</table>")[0]
    assert re.findall(r"<code>([\d.-]+)</code>.*?<td>([\w:]+)</td>", table) == [
        ("1-0-7", "route"),
        ("1-0-8", "route"),
        ("1-0-9", "ingest"),
        ("1-0-5", "transform:crm"),
        ("1-0-6", "transform:crm"),
    ]
    foot = re.findall(r"<td[^>]*>([\d.]+)\u202f%</td>", table)
    assert foot == ["0.0", "10.0", "0.0", "22.2", "0.0", "28.6"]
    assert "end to end 50.0\u202f%: 5 of 10 messages" in page


def test_loss_table_units_and_journey_say_the_same_of_where_a_message_was_last_seen(
    alices: Client, client_of: MakeClient, alice: User, talk: Truth
):
    base, api = f"/pipes/{talk.pipe.id}", client_of(alice)
    keys = ("last_seen", "last_seen_words")
    lost = api.get(f"/api/v1{base}/minutes/{MINUTE}/losses/").json()["results"]
    units = api.get(f"/api/v1{base}/minutes/{MINUTE}/units/").json()["results"]
    table = {(one["position"], one["destination"]): tuple(one[key] for key in keys) for one in lost}
    assert {(one["position"], one["destination"]): tuple(one[key] for key in keys) for one in units} == table
    assert {node for node, _ in table.values()} == {"ingest", "route", "transform:crm"}
    for (position, destination), last in table.items():
        journey = api.get(f"/api/v1{base}/messages/{position}/", {"minute": str(MINUTE)}).json()
        legs = {leg["destination"]: leg for leg in journey["destinations"]} | {"": journey}
        assert tuple(legs[destination][key] for key in keys) == last
        page = alices.get(f"{base}/messages/{position}/", {"minute": str(MINUTE)}).content.decode()
        assert f"Last seen: {last[0]}, {last[1]}" in page


def test_minute_without_loss_says_so_and_reads_no_facts_for_it(alices: Client, pipe: Pipe):
    go_live(pipe)
    truth = Truth(pipe)
    truth.moved(MINUTE, [1])
    truth.fact(MINUTE, "transmit:crm", "delivered", [1])
    truth.passed(100)
    page = alices.get(f"/pipes/{pipe.id}/minutes/{MINUTE}/").content.decode()
    assert "No message was lost in this minute." in page
    assert "<code>1-0-" not in page  # no row of a message


def test_pages_of_lost_messages_are_bounded_and_lead_on(alices: Client, client_of: MakeClient, alice: User, pipe: Pipe):
    go_live(pipe)
    truth = Truth(pipe)
    truth.fact(MINUTE, "ingest", "sent", list(range(450)), "acked")
    truth.passed(1_000)
    path = f"/pipes/{pipe.id}/minutes/{MINUTE}/"
    pages = [alices.get(path, {"after": str(after)}).content.decode() for after in (0, 200, 400)]
    counts = [page.count("<td>ingest</td>") for page in pages]
    assert counts == [200, 200, 50]
    assert "?after=200" in alices.get(path).content.decode()
    api = client_of(alice)
    first = api.get(f"/api/v1{path}losses/", {"limit": "200"}).json()
    last = api.get(f"/api/v1{path}losses/", {"limit": "200", "offset": "400"}).json()
    assert (len(first["results"]), first["next_offset"]) == (200, 200)
    assert (len(last["results"]), last["next_offset"]) == (50, None)
    for refused in ({"limit": "201"}, {"offset": "-1"}, {"after": "200"}):
        assert api.get(f"/api/v1{path}losses/", refused).status_code == 400


def test_exports_have_one_row_per_lost_message_and_one_column_per_node(alices: Client, talk: Truth):
    path = f"/pipes/{talk.pipe.id}/minutes/{MINUTE}/"
    text = b"".join(alices.get(path, {"format": "csv"}).streaming_content).decode()  # type: ignore[attr-defined]
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == ["position", "child", "destination", "last_seen", *NODES]
    assert [(row["position"], row["last_seen"], row["route"]) for row in rows] == [
        ("1-0-7", "route", "seen"),
        ("1-0-8", "route", "seen"),
        ("1-0-9", "ingest", ""),
        ("1-0-5", "transform:crm", "seen"),
        ("1-0-6", "transform:crm", "seen"),
    ]
    lines = b"".join(alices.get(path, {"format": "jsonl"}).streaming_content).decode()  # type: ignore[attr-defined]
    assert [json.loads(line)["position"] for line in lines.splitlines()] == [row["position"] for row in rows]


def test_api_returns_the_same_table(client_of: MakeClient, alice: User, talk: Truth):
    found = client_of(alice).get(f"/api/v1/pipes/{talk.pipe.id}/minutes/{MINUTE}/losses/").json()
    assert [node["node"] for node in found["loss"]["nodes"]] == NODES
    assert (found["loss"]["due"], found["loss"]["lost"], found["loss"]["share"]) == (10, 5, 0.5)
    assert found["results"][0] == {
        "position": "1-0-7",
        "child": 0,
        "destination": "",
        "last_seen": "route",
        "last_seen_words": "processed up to the route. No destination reported it.",
        "seen": NODES[:4],
    }


@pytest.mark.parametrize("was", ["retrying", "dead"])  # a dead letter changes its outcome only by a new fact
def test_sealed_minute_shows_the_outcomes_of_now_and_those_at_the_seal(
    alices: Client, client_of: MakeClient, alice: User, pipe: Pipe, was: str
):
    go_live(pipe)
    truth = Truth(pipe)
    truth.moved(MINUTE, [1, 2, 3])
    truth.fact(MINUTE, "transmit:crm", "delivered", [1, 2, 3])
    truth.fact(MINUTE, "transmit:crm", "parked", [2, 3], "1")
    truth.passed(100)
    truth.seal(MINUTE, accepted=3)
    Seal.objects.filter(pipe_id=pipe.id).update(bins={"crm": {"delivered": 1, was: 2}})
    LateCount.objects.create(pipe_id=pipe.id, bucket=MINUTE, node="transmit:crm", fact="delivered", count=40)
    path = f"/pipes/{pipe.id}/minutes/{MINUTE}/"
    found = client_of(alice).get(f"/api/v1{path}").json()
    assert {name: count for name, count in found["bins"].items() if count} == {"delivered": 3}
    assert {name: count for name, count in found["bins_at_seal"].items() if count} == {"delivered": 1, was: 2}
    assert found["late"] == 2
    before = client_of(alice).get(f"/api/v1/pipes/{pipe.id}/minutes/{MINUTE - 1}/").json()
    assert before["bins_at_seal"] is None, "the minute is open"
    page = alices.get(path).content.decode()
    assert "2 messages changed outcome after that" in page
