"""The page of an alert about numeric drift compares both distributions; its fields can be ignored and watched again."""

from datetime import datetime

import pytest
from django.test import Client
from django.urls import reverse

from dataplane.causes import Cause
from mgmt.alerts.services.alerts import AlertReport, report_condition
from mgmt.models import Alert, IgnoredField, Pipe, User
from tests.db.console.truth import BrowserOf
from tests.support.numeric_drift import details, drifting


@pytest.fixture
def alert(pipe: Pipe, now: datetime) -> Alert:
    found = details(drifting(), drifting(path="user.age"))
    report_condition(report=AlertReport(pipe.id, "", Cause.NUMERIC_DRIFT, 2, found, {}), now=now)
    return Alert.objects.get()


def url_of(name: str, alert: Alert, *more: str) -> str:
    return reverse(f"console:{name}", args=[alert.pipe_id, *more])


def ignore(browser: Client, alert: Alert, field: str = "score") -> str:
    posted = browser.post(url_of("ignore_field", alert), {"source": "shop", "field": field}, follow=True)
    return posted.content.decode()


def test_page_shows_both_distributions_and_their_quantiles(alices: Client, alert: Alert):
    page = alices.get(url_of("alert", alert, alert.id)).content.decode()
    for text in ("Numeric fields have unusual values", "<code>score</code> of source shop", "usually 0.6 at this hour",
                 "Population stability index", "Values of score by range", "below 0.195", "48.0 %", "Median",
                 "Messages are delivered as usual", ">Ignore this field<"):  # fmt: skip
        assert text in page, text
    assert page.count('class="share-bar"') == page.count('class="share-bar share-bar-now"') > 15
    assert "Latest failure" not in page
    assert "2 fields" in alices.get(reverse("console:alerts")).content.decode()
    assert "population stability" in alices.get(reverse("console:cause", args=["numeric-drift"])).content.decode()


def test_api_returns_the_numbers(alices: Client, alert: Alert):
    body = alices.get(f"/api/v1/pipes/{alert.pipe_id}/alerts/{alert.id}/").json()
    (first, _) = body["details"]["fields"]
    assert (body["cause"], body["count"], first["field"], first["basis"]) == (
        "numeric-drift", 2, "score", "at this hour of the day",
    )  # fmt: skip
    assert set(first["quantiles"]) == {"p10", "p25", "p50", "p75", "p90"}


def test_ignored_field_leaves_the_alert_and_can_be_watched_again(alices: Client, alert: Alert):
    page = ignore(alices, alert)
    assert "Field score of source shop is ignored" in page
    assert "Ignored fields" in page
    page = alices.get(url_of("alert", alert, alert.id)).content.decode()
    assert "<code>score</code>" not in page
    assert "<code>user.age</code>" in page
    assert "is ignored already" in ignore(alices, alert)
    ignore(alices, alert, "user.age")
    alert.refresh_from_db()
    assert alert.state == "resolved"
    row = IgnoredField.objects.get(path="score")
    page = alices.post(url_of("watch_field", alert, row.id), follow=True).content.decode()
    assert "Field score is watched again" in page
    assert list(IgnoredField.objects.values_list("path", flat=True)) == ["user.age"]


def test_viewers_cannot_ignore_fields_and_others_do_not_find_them(
    browser_of: BrowserOf, alices: Client, viewer: User, charlie: User, alert: Alert
):
    ignore(alices, alert)
    row = IgnoredField.objects.get()
    vera = browser_of(viewer)
    assert ">Ignore this field<" not in vera.get(url_of("alert", alert, alert.id)).content.decode()
    page = vera.get(url_of("patterns", alert)).content.decode()
    assert "Ignored fields" in page
    assert "Watch again" not in page
    for browser, status in ((vera, 403), (browser_of(charlie), 404)):
        assert browser.post(url_of("ignore_field", alert), {"source": "shop", "field": "x"}).status_code == status
        assert browser.post(url_of("watch_field", alert, row.id)).status_code == status
    assert IgnoredField.objects.count() == 1


def test_api_lists_ignores_and_watches_fields(alices: Client, charlie: User, browser_of: BrowserOf, alert: Alert):
    url = f"/api/v1/pipes/{alert.pipe_id}/ignored-fields/"
    made = alices.post(url, {"source": "shop", "field": "score"}, content_type="application/json")
    assert (made.status_code, made.json()["by"]) == (201, "alice")
    again = alices.post(url, {"source": "shop", "field": "score"}, content_type="application/json")
    assert (again.status_code, again.json()["code"]) == (409, "name-taken")
    assert [(one["source"], one["field"]) for one in alices.get(url).json()] == [("shop", "score")]
    one = f"{url}{made.json()['id']}/"
    assert browser_of(charlie).delete(one).status_code == 404
    assert alices.delete(one).status_code == 204
    assert alices.get(url).json() == []
