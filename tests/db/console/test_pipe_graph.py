"""The graph of a pipe's page: figures of each stop are those of other pages, and each stop and problem is a link."""

import re

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from dataplane.ledger.bins import Bin
from mgmt.deliveries.services.destinations import pause_destination
from mgmt.ledger.queries.bucket_range import bucket_at, rate_per_s
from mgmt.ledger.queries.minutes import DestinationLoss, MinuteLoss
from mgmt.models import AttemptCount, Destination, Pipe, User
from mgmt.pipes.graph import delivered_share
from mgmt.services import publish_revision
from tests.db.cast import MakeSpec
from tests.db.console.truth import BrowserOf, Truth, go_live
from tests.db.console.undelivered import open_alert, store_dead, store_held

pytestmark = pytest.mark.django_db
NARROW = "\u202f"


def graph_of(browser: Client, pipe: Pipe) -> str:
    page = browser.get(f"/pipes/{pipe.id}/").content.decode().replace(NARROW, " ")
    return re.sub(r"\s+", " ", page.split('<ol class="graph">')[1].split("<dl")[0])


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)).strip()


def test_destination_shows_its_lag_and_delivered_share_as_in_the_api(
    alices: Client, api: APIClient, truth: Truth, bucket: int
):
    truth.lag(bucket + 1, "transmit:crm", "out", [200_000] * 4)  # so that the percentiles differ
    shown = words(graph_of(alices, truth.pipe))
    nodes = api.get(f"/api/v1/pipes/{truth.pipe.id}/timing/").json()["nodes"]
    (lag_us,) = [node["lag_out"]["p95_us"] for node in nodes if node["node"] == "transmit:crm"]
    assert f"p95 {lag_us / 1_000:.0f} ms" in shown
    bins = api.get(f"/api/v1/pipes/{truth.pipe.id}/minutes/").json()["total"]["bins"]
    share = bins["delivered"] / (bins["delivered"] + bins["dead"] + bins["retrying"])  # the loss is not final yet
    assert f"{share * 100:.1f} % delivered" in shown


def test_destination_shows_its_deliveries_per_second(alices: Client, truth: Truth, monkeypatch: pytest.MonkeyPatch):
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    counts = {bucket_at(now) - 1: 600, bucket_at(now): 300}
    for minute, delivered in counts.items():
        AttemptCount.objects.create(
            pipe_id=truth.pipe.id, destination="crm", minute=minute, delivered=delivered, failed=0
        )
    per_s = rate_per_s(600, 300, now.timestamp() % 60)
    expected = f"{per_s:.1f}" if per_s < 10 else f"{per_s:.0f}"
    assert f"Out {expected} / s" in words(graph_of(alices, truth.pipe))


def test_each_stop_is_a_link_to_the_page_behind_it(alices: Client, pipe: Pipe, alice: User, a_spec: MakeSpec):
    rule = {"when": "true", "to": ["crm"]}
    spec = a_spec() | {"normalize": [{"op": "mask", "path": "email"}], "routes": {"rules": [rule]}}
    go_live(pipe)
    publish_revision(pipe=pipe, spec=spec, based_on=1, author=alice, at_once=True)
    go_live(pipe)
    graph, base = graph_of(alices, pipe), f"/pipes/{pipe.id}"
    for name, page in (("shop", "settings"), ("ingest", "settings"), ("normalize", "edit"), ("route", "edit")):
        assert f'<a href="{base}/{page}/">{name}</a>' in graph, name
    assert re.search(rf'<a href="{base}/destinations/crm/"[^>]*>crm</a>', graph)
    assert "normalize 1 step" in words(graph)
    assert "route 1 rule" in words(graph)


def test_bulk_execution_is_a_stop_before_the_steps(alices: Client, pipe: Pipe, alice: User, a_spec: MakeSpec):
    go_live(pipe)
    assert "bulk" not in graph_of(alices, pipe)
    publish_revision(pipe=pipe, spec=a_spec() | {"execution": "bulk"}, based_on=1, author=alice, at_once=True)
    go_live(pipe)
    graph = graph_of(alices, pipe)
    assert "ingest bulk execution normalize" in words(graph)
    assert 'id="node-bulk-execution"' in graph


def test_steps_link_to_the_revisions_for_a_viewer(browser_of: BrowserOf, viewer: User, pipe: Pipe):
    assert f'<a href="/pipes/{pipe.id}/revisions/">normalize</a>' in graph_of(browser_of(viewer), pipe)
    assert browser_of(viewer).get(f"/pipes/{pipe.id}/edit/").status_code == 403


def test_problems_of_a_destination_are_links_to_their_messages_and_alert(alices: Client, pipe: Pipe):
    go_live(pipe)
    now = timezone.now()
    store_dead(pipe, range(20), now)
    store_held(pipe, range(20, 23), now)
    alert = open_alert(pipe, now)
    graph = graph_of(alices, pipe).replace("&amp;", "&")
    links = dict(re.findall(r'<a class="(?:bad|wait)" href="([^"]+)">([^<]+)</a>', graph))
    dead, held = f"/pipes/{pipe.id}/dead/?destination=crm", f"/pipes/{pipe.id}/held/?destination=crm"
    assert links == {f"/pipes/{pipe.id}/alerts/{alert.id}/": "Returned 401", dead: "20 dead", held: "3 held"}
    assert alices.get(dead).content.decode().count("/dead/") >= 20
    assert {alices.get(link).status_code for link in links} == {200}


def test_messages_that_reached_no_destination_are_shown_by_cause(alices: Client, pipe: Pipe):
    go_live(pipe)
    store_dead(pipe, range(4), timezone.now(), cause="route", where="")
    graph = graph_of(alices, pipe)
    assert "Reached no destination: 4 dead: " in words(graph)
    assert f'href="/pipes/{pipe.id}/dead/?cause=route"' in graph


def test_paused_destination_has_its_state(alices: Client, pipe: Pipe, alice: User):
    go_live(pipe)
    pause_destination(destination=Destination.objects.get(pipe=pipe), by=alice)
    assert '<span class="state state-wait">paused</span>' in graph_of(alices, pipe)


def test_delivered_share_counts_lost_messages_of_sealed_minutes_only():
    bins = (DestinationLoss("crm", {str(Bin.DELIVERED): 8, str(Bin.LOST): 2, str(Bin.QUEUED): 5}),)
    still_open = MinuteLoss(1, None, 10, 0, {}, bins)
    sealed = MinuteLoss(1, timezone.now(), 10, 0, {}, bins)
    assert delivered_share([still_open], "crm") == 1
    assert delivered_share([sealed], "crm") == 0.8
    assert delivered_share([sealed], "shop") is None
