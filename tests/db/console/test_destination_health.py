"""The home page, the pipe page and the API show failing destinations and the messages that wait."""

from datetime import timedelta

import pytest
from django.utils import timezone

from dataplane.causes import Cause
from mgmt.alerts.services.alerts import AlertReport, report_condition
from mgmt.ledger.queries.bucket_range import bucket_at, span_until, start_of
from mgmt.ledger.queries.timing import timing
from mgmt.ledger.queries.trends import trends_of
from mgmt.models import Alert, Destination, DestinationHealth, Pipe, User
from tests.db.cast import MakeClient
from tests.db.console.truth import BrowserOf, Truth

NOW = timezone.now()
MINUTE = timedelta(minutes=1)


@pytest.fixture
def failing(truth: Truth) -> DestinationHealth:
    oldest = bucket_at(NOW) - 310
    return DestinationHealth.objects.create(
        destination=Destination.objects.get(pipe=truth.pipe, name="crm"),
        checked_at=NOW,
        failed=9,
        waiting=4,
        waiting_minutes=[[oldest, 3], [oldest + 1, 1]],
        oldest_at=start_of(oldest),
        failing_since=NOW - 4 * MINUTE,
    )


@pytest.mark.usefixtures("failing")
def test_home_and_pipe_page_show_the_failing_destination_and_its_oldest_message(
    browser_of: BrowserOf, alice: User, pipe: Pipe
):
    browser = browser_of(alice)
    home = browser.get("/").text
    assert "crm failing" in home
    assert "oldest waits 5" in home
    overview = browser.get(f"/pipes/{pipe.id}/").text
    assert '<span class="state state-bad">failing</span>' in overview
    assert "4 waiting" in overview
    assert "Oldest waiting" in overview


@pytest.mark.usefixtures("failing")
def test_lag_includes_the_messages_that_wait(truth: Truth, pipe: Pipe):
    truth.lag(bucket_at(NOW), "transmit:crm", "out", [5_000] * 4)
    span = span_until("1h", NOW)
    p95 = trends_of([pipe.id], span).by_pipe[pipe.id].lag_p95_us
    assert p95 is not None
    assert p95 > 7 * 60 * 1_000_000
    assert timing(pipe_id=pipe.id, span=span).end_to_end_us == p95


def test_api_shows_the_health_of_each_destination(
    client_of: MakeClient, alice: User, pipe: Pipe, failing: DestinationHealth
):
    (standing,) = client_of(alice).get(f"/api/v1/pipes/{pipe.id}/standings/").json()
    assert (standing["health"]["waiting"], standing["health"]["failed"]) == (4, 9)
    assert standing["health"]["failing_since"]
    failing.delete()
    (standing,) = client_of(alice).get(f"/api/v1/pipes/{pipe.id}/standings/").json()
    assert standing["health"] is None


@pytest.mark.usefixtures("failing")
def test_alert_page_and_api_show_figures_and_offer_no_release(
    browser_of: BrowserOf, client_of: MakeClient, alice: User, pipe: Pipe
):
    details = {"attempts": 12, "failed": 9, "waiting": 4, "oldest_at": start_of(bucket_at(NOW) - 8).isoformat()}
    report_condition(report=AlertReport(pipe.id, "crm", Cause.FAILING, 4, details, {}), now=NOW)
    alert = Alert.objects.get()
    page = browser_of(alice).get(f"/pipes/{pipe.id}/alerts/{alert.id}/").text
    for text in ("Attempts are failing", "9 of 12", "Oldest waiting since"):
        assert text.lower() in page.lower()
    assert "release the rest" not in page
    body = client_of(alice).get(f"/api/v1/pipes/{pipe.id}/alerts/{alert.id}/").json()
    assert body["details"] == details
