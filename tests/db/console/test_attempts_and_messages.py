"""Attempts: filters and pages in the URL, file exports, and one message with all its attempts."""

import json

import pytest
from django.test import Client
from django.urls import reverse

from mgmt.deliveries.pages import attempts as attempt_views
from mgmt.models import DeliveryAttempt
from tests.db.console.truth import Truth

pytestmark = pytest.mark.django_db


@pytest.fixture
def url(truth: Truth) -> str:
    return reverse("console:attempts", args=[truth.pipe.id])


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ({}, 3),
        ({"outcome": "dead"}, 1),
        ({"cause": "timeout"}, 1),
        ({"destination": "crm"}, 3),
        ({"destination": "nobody"}, 0),
        ({"outcome": "no such"}, 3),
        ({"message": "no such\x00"}, 0),
    ],
)
def test_attempts_are_filtered_by_url_parameters(alices: Client, url: str, query: dict[str, str], rows: int):
    page = alices.get(url, query).content.decode()
    assert page.count('<th scope="row" class="at">') == rows


def test_message_is_found_by_its_id(alices: Client, url: str):
    wanted = DeliveryAttempt.objects.get(outcome="dead").message_id
    page = alices.get(url, {"message": wanted}).content.decode()
    assert page.count('<th scope="row" class="at">') == 1


def test_older_link_pages_through_all_attempts_without_gaps(alices: Client, url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(attempt_views, "MOST", 1)
    seen, address = [], url
    while address:
        page = alices.get(address).content.decode()
        seen.append(page.split('title="')[1].split(",")[0])
        older = page.partition('">Older</a>')[0].rpartition('href="')[2] if "Older</a>" in page else ""
        address = older.replace("&amp;", "&")
    assert sorted(seen) == sorted(DeliveryAttempt.objects.values_list("message_id", flat=True))


@pytest.mark.parametrize("before", ["x", "1-", "-1", "9" * 30 + "-1"])
def test_forged_page_cursor_returns_the_first_page(alices: Client, url: str, before: str):
    assert alices.get(url, {"before": before}).content.decode().count('<th scope="row" class="at">') == 3


def test_filters_apply_to_the_file_export(alices: Client, url: str):
    answer = alices.get(url, {"format": "jsonl", "outcome": "dead"})
    [line] = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]  # type: ignore[attr-defined]
    assert (line["status"], line["reason"], line["destination"]) == (401, "rejected", "crm")
    table = alices.get(url, {"format": "csv"})
    assert len(b"".join(table.streaming_content).splitlines()) == 4  # type: ignore[attr-defined]


def test_loss_table_and_units_of_a_minute_have_file_exports(alices: Client, truth: Truth, bucket: int):
    answer = alices.get(reverse("console:pipe", args=[truth.pipe.id]), {"format": "jsonl"})
    [line] = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]  # type: ignore[attr-defined]
    assert (line["accepted"], line["delivered"], line["dead"], line["lost"]) == (10, 7, 1, 1)
    minute = reverse("console:minute", args=[truth.pipe.id, bucket])
    units = alices.get(minute, {"format": "csv", "bin": "dead"})
    assert b"".join(units.streaming_content).splitlines() == [  # type: ignore[attr-defined]
        b"position,destination,bin",
        b"1-0-7,crm,dead",
    ]


def test_message_page_shows_its_bin_and_every_attempt(alices: Client, truth: Truth):
    row = DeliveryAttempt.objects.get(outcome="dead")
    page = alices.get(reverse("console:message", args=[truth.pipe.id, "1-0-7"])).content.decode()
    assert row.message_id in page
    assert '<span class="state state-bad">dead</span>' in page
    assert "Returned 401" in page
    assert reverse("console:cause", args=["rejected"]) in page


def test_message_without_attempts_is_found_by_its_minute(alices: Client, truth: Truth, bucket: int):
    url = reverse("console:message", args=[truth.pipe.id, "1-0-9"])
    assert alices.get(url).status_code == 404
    assert "no outcome was recorded" in alices.get(url, {"minute": str(bucket)}).content.decode()


@pytest.mark.parametrize("position", ["1-0-99", "x", "1-0", "1-0--5"])
def test_unknown_message_is_not_found(alices: Client, truth: Truth, position: str):
    assert alices.get(reverse("console:message", args=[truth.pipe.id, position])).status_code == 404


def test_destination_page_shows_undelivered_messages_with_their_cause(alices: Client, truth: Truth):
    page = alices.get(reverse("console:destination", args=[truth.pipe.id, "crm"])).content.decode()
    assert "crm: returned 401" in page
    assert '<dt>Dead (1 h)</dt><dd class="bad">1</dd>' in page
    assert "with increasing delays for 1" in page


def test_every_cause_has_a_help_page_and_unknown_codes_have_none(alices: Client, truth: Truth):
    page = alices.get(reverse("console:causes")).content.decode()
    for code in ("rejected", "timeout", "step"):
        assert reverse("console:cause", args=[code]) in page
    assert "retried automatically" in alices.get(reverse("console:cause", args=["timeout"])).content.decode()
    assert alices.get("/help/causes/no-such/").status_code == 404
