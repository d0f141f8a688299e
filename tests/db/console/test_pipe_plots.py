"""The plots of a pipe's page: their table has the ledger's numbers, and marks for the events of the range."""

import re
from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from mgmt.cells.services.control import note
from mgmt.ledger.queries.bucket_range import bucket_at, start_of
from mgmt.models import AttemptCount, ControlAction, Destination, DestinationHealth, Pipe, User
from mgmt.services import begin_ramp, publish_revision, raise_share, roll_back_ramp
from tests.db.cast import MakeSpec
from tests.db.console.truth import Truth, go_live
from tests.db.console.undelivered import open_alert

pytestmark = pytest.mark.django_db
OUTCOMES = ("Delivered", "Retrying", "Held", "Dead", "Lost")
COLUMNS = ("In / s", "Out / s", "Lag p50", "Lag p95", "Oldest waiting", *OUTCOMES)


@pytest.fixture(autouse=True)
def fixed_now(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """A time in the middle of a minute, so that two requests see the same minutes."""
    now = timezone.now().replace(second=30, microsecond=0)
    monkeypatch.setattr(timezone, "now", lambda: now)
    return now


def page_of(browser: Client, pipe: Pipe, **query: str) -> str:
    return browser.get(f"/pipes/{pipe.id}/", query).content.decode()


def points_of(page: str) -> dict[int, dict[str, float | None]]:
    """Return the values that the plots are drawn from, by minute and column."""
    table = page.split('id="plots-table"')[1].split("</table>", maxsplit=1)[0]
    rows = re.findall(r'<tr data-at="([^"]+)">(.*?)</tr>', table, re.S)
    found = {}
    for at, row in rows:
        values = [float(value) if value else None for value in re.findall(r'data-value="([^"]*)"', row)]
        found[bucket_at(datetime.fromisoformat(at))] = dict(zip(COLUMNS, values, strict=True))
    return found


def marks_of(page: str) -> list[tuple[str, str]]:
    """Return (kind, words) of each mark, in order of time."""
    region = page.split('aria-label="Events in this time range"')[1].split("</div>", maxsplit=1)[0]
    rows = re.findall(r'data-kind="(\w+)">.*?<td class="words">(.*?)</td>', region, re.S)
    return [(kind, re.sub(r"<[^>]+>", "", words)) for kind, words in rows]


def test_outcomes_and_rates_of_the_plots_are_those_of_the_api(alices: Client, api: APIClient, truth: Truth):
    points = points_of(page_of(alices, truth.pipe))
    assert len(points) == 60
    minutes = {one["minute"]: one for one in api.get(f"/api/v1/pipes/{truth.pipe.id}/minutes/").json()["results"]}
    assert minutes
    for minute, point in points.items():
        bins = minutes.get(minute, {}).get("bins", {})
        for column in OUTCOMES:
            assert point[column] == bins.get(column.lower(), 0), (minute, column)
        if minute != max(points):
            assert point["In / s"] == pytest.approx(minutes.get(minute, {}).get("accepted", 0) / 60, abs=1e-5)
    assert points[max(points)]["In / s"] is None, "the running minute has no rate"


def test_lags_of_the_plots_are_those_of_the_api(alices: Client, api: APIClient, truth: Truth, bucket: int):
    truth.lag(bucket + 1, "transmit:crm", "out", [9_000] * 5 + [200_000] * 5)  # so that the percentiles differ
    points = points_of(page_of(alices, truth.pipe))
    lags = {one["minute"]: one["nodes"] for one in api.get(f"/api/v1/pipes/{truth.pipe.id}/lag/").json()["results"]}
    assert lags
    for minute, point in points.items():
        out = next((node["lag_out"] for node in lags.get(minute, []) if node["node"] == "transmit:crm"), None)
        assert (point["Lag p50"], point["Lag p95"]) == ((out["p50_us"], out["p95_us"]) if out else (None, None))


def test_out_counts_deliveries_to_all_destinations_in_the_minute_of_the_delivery(
    alices: Client, truth: Truth, bucket: int
):
    for name, delivered in (("crm", 120), ("sales", 60)):
        AttemptCount.objects.create(
            pipe_id=truth.pipe.id, destination=name, minute=bucket + 2, delivered=delivered, failed=9
        )
    points = points_of(page_of(alices, truth.pipe))
    assert points[bucket + 2]["Out / s"] == 3
    assert points[bucket]["Out / s"] == 0


def test_oldest_waiting_rises_from_the_minute_of_the_oldest_message_until_now(
    alices: Client, truth: Truth, bucket: int, fixed_now: datetime
):
    crm = Destination.objects.get(pipe=truth.pipe, name="crm")
    DestinationHealth.objects.create(destination=crm, checked_at=fixed_now, waiting=1, oldest_at=start_of(bucket))
    points = points_of(page_of(alices, truth.pipe))
    assert points[bucket - 1]["Oldest waiting"] is None
    assert points[bucket]["Oldest waiting"] == 60_000_000
    assert points[bucket_at(fixed_now)]["Oldest waiting"] == (fixed_now - start_of(bucket)) / timedelta(microseconds=1)


def test_six_hours_are_plotted_in_groups_with_the_same_sums(alices: Client, truth: Truth):
    points = points_of(page_of(alices, truth.pipe, range="6h"))
    assert len(points) == 72
    assert sum(point["Delivered"] or 0 for point in points.values()) == 7
    assert sum((point["In / s"] or 0) * 300 for point in points.values()) == pytest.approx(10, abs=1e-3)


def test_revision_ramp_scaling_and_alert_have_marks(
    alices: Client, pipe: Pipe, alice: User, a_spec: MakeSpec, fixed_now: datetime
):
    go_live(pipe)
    started = fixed_now - timedelta(minutes=9)
    second = publish_revision(pipe=pipe, spec=a_spec(), based_on=1, author=alice)
    begin_ramp(revision=second, share=5, now=started)
    raise_share(ramp=second.ramp, share=25, figures={}, now=started + timedelta(minutes=1))
    roll_back_ramp(ramp=second.ramp, by=alice, reason="it failed", now=started + timedelta(minutes=2))
    detail = {"kind": "process", "before": 2, "lanes": 3}
    pipe.refresh_from_db()
    scaled_at = started + timedelta(minutes=3)
    done, refused = ControlAction.Outcome.DONE, ControlAction.Outcome.REFUSED
    note("scale", "scale-out", outcome=done, at=scaled_at, cell=pipe.cell_id, reason="lag", detail=detail)
    note("scale", "scale", outcome=refused, at=scaled_at, cell=pipe.cell_id, refusal="paused", detail=detail)
    alert = open_alert(pipe, started + timedelta(minutes=4))
    alert.state, alert.resolved_at = "resolved", started + timedelta(minutes=5)
    alert.save()
    page = page_of(alices, pipe)
    assert marks_of(page) == [
        ("ramp", "Ramp of revision 2: 5 % of the keys"),
        ("ramp", "Ramp of revision 2: 25 % of the keys"),
        ("ramp", "Revision 2 was rolled back"),
        ("scaling", "Cell scaled: 2 to 3 process lanes"),
        ("alert", "Alert: crm: returned 401"),
        ("alert", "Resolved: crm: returned 401"),
        ("revision", "Revision 1 is live"),
    ]
    assert f'href="/pipes/{pipe.id}/alerts/{alert.id}/"' in page


def test_events_outside_the_range_have_no_mark(alices: Client, pipe: Pipe, fixed_now: datetime):
    go_live(pipe)
    pipe.revisions.update(live_at=fixed_now - timedelta(minutes=30))
    assert marks_of(page_of(alices, pipe, range="15m")) == []
    assert "No revision, ramp, scaling or alert in this time range." in page_of(alices, pipe, range="15m")
    assert marks_of(page_of(alices, pipe, range="1h")) == [("revision", "Revision 1 is live")]
