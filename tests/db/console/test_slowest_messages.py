"""Slowest messages of a range: exact durations from recorded attempts, with the outcome of now."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from rest_framework.test import APIClient

from dataplane.ledger.units import position_of
from mgmt.deliveries.queries.slowest import (
    Measure,
    RecordedAttempt,
    measure_for,
    slowest_messages,
    slowest_of,
)
from mgmt.ledger.queries.bucket_range import BucketRange, start_of
from mgmt.messages.queries.message_search import accepted_at
from mgmt.models import DeliveryAttempt
from tests.db.console.truth import Truth, id_as_of_ingest

S = timedelta(seconds=1)


def attempt(bucket: int, number: int, after_s: float, took_s: float, outcome: str = "parked") -> RecordedAttempt:
    accepted = start_of(bucket)
    return RecordedAttempt(
        position_of(1, 0, number),
        "crm",
        id_as_of_ingest(accepted, number),
        bucket,
        accepted + after_s * S,
        outcome,
        took_s * S,
    )


def store(truth: Truth, one: RecordedAttempt, number: int) -> None:
    DeliveryAttempt.objects.create(
        pipe_id=truth.pipe.id,
        destination=one.destination,
        message_id=one.message_id,
        position=one.position,
        revision=1,
        bucket=one.bucket,
        number=number,
        at=one.at,
        status=500,
        outcome=one.outcome,
        timing_us={"total": int(one.took / timedelta(microseconds=1))},
    )


@pytest.mark.parametrize(
    ("measure", "slowest"),
    [
        pytest.param(Measure.WHOLE, [(33 * S, 1), (12 * S, 2)], id="from acceptance to the end of the last attempt"),
        pytest.param(Measure.REQUESTS, [(10 * S, 2), (4 * S, 1)], id="sum of the requests"),
        pytest.param(Measure.BETWEEN, [(28 * S, 1)], id="pauses between attempts; one attempt has none"),
    ],
)
def test_messages_are_sorted_by_the_measure(bucket: int, measure: Measure, slowest: list[tuple[timedelta, int]]):
    rows = [attempt(bucket, 1, 30, 3), attempt(bucket, 2, 2, 10), attempt(bucket, 1, 1, 1)]
    assert [(took, int(own[0].message_id[-1])) for took, own in slowest_of(rows, measure, 20)] == slowest


def test_number_of_messages_is_limited(bucket: int):
    assert len(slowest_of([attempt(bucket, number, 1, 1) for number in range(30)], Measure.WHOLE, 20)) == 20


def test_stage_without_times_of_single_messages_is_sorted_by_the_whole():
    assert measure_for("transmit") == Measure.REQUESTS
    assert measure_for("retry wait") == Measure.BETWEEN
    assert measure_for("normalize") == measure_for("") == measure_for("<script>") == Measure.WHOLE


def test_time_of_acceptance_is_in_the_id(bucket: int):
    assert accepted_at(id_as_of_ingest(start_of(bucket), 5)) == start_of(bucket)
    assert accepted_at("m7") is None


@pytest.mark.django_db
def test_outcome_is_that_of_the_ledger_and_not_of_the_last_recorded_attempt(truth: Truth, bucket: int):
    DeliveryAttempt.objects.all().delete()
    store(truth, attempt(bucket, 3, 5, 1), 1)  # later delivered, which was not in the sample
    store(truth, attempt(bucket, 8, 2, 1), 1)
    found = slowest_messages(pipe_id=truth.pipe.id, span=BucketRange("", bucket, bucket), measure=Measure.WHOLE)
    assert [(one.position, one.bin, one.took_us) for one in found.messages] == [
        ("1-0-3", "delivered", 6_000_000),
        ("1-0-8", "retrying", 3_000_000),
    ]
    beside = BucketRange("", bucket + 1, bucket + 1)
    assert not slowest_messages(pipe_id=truth.pipe.id, span=beside, measure=Measure.WHOLE).messages


@pytest.mark.django_db
def test_each_stage_of_the_breakdown_links_to_its_slowest_messages(alices: Client, truth: Truth, bucket: int):
    DeliveryAttempt.objects.all().delete()
    store(truth, attempt(bucket, 3, 1, 1), 1)
    store(truth, attempt(bucket, 3, 5, 1, "delivered"), 2)
    store(truth, attempt(bucket, 4, 2, 3, "delivered"), 1)
    page = alices.get(f"/pipes/{truth.pipe.id}/").content.decode()
    links = re.findall(r'href="(\?[^"]*stage=[^"]*)#slowest"', page.split('id="pie"')[1])
    assert len(links) == 5
    shown = {}
    for link in links:
        html = alices.get(f"/pipes/{truth.pipe.id}/{link.replace('&amp;', '&')}").content.decode()
        shown[link.split("stage=")[1]] = re.findall(
            r"/messages/([\d-]+)/", html.split('id="slowest-list"')[1].split("</table>")[0]
        )
    assert shown["transmit"] == ["1-0-4", "1-0-3"]
    assert shown["normalize"] == ["1-0-3", "1-0-4"]
    one = alices.get(f"/pipes/{truth.pipe.id}/", {"stage": "normalize"}).content.decode()
    assert "kept as a distribution, not for each message" in one


@pytest.mark.django_db
@pytest.mark.parametrize("stage", ["", "transmit", "retry wait", "normalize"])
def test_api_lists_the_slowest_messages_that_the_page_lists(
    alices: Client, api: APIClient, truth: Truth, bucket: int, stage: str
):
    DeliveryAttempt.objects.all().delete()
    for number, after_s, took_s in ((3, 1, 1), (3, 5, 1), (4, 2, 3)):
        store(truth, attempt(bucket, number, after_s, took_s), after_s)
    store(truth, attempt(bucket - 10, 99, 60, 5), 1)
    times = {"from": start_of(bucket), "to": start_of(bucket + 1)}
    query = {name: f"{at:%Y-%m-%dT%H:%M}" for name, at in times.items()} | ({"stage": stage} if stage else {})
    page = alices.get(f"/pipes/{truth.pipe.id}/", query).context["get_slowest"]()
    path = f"/api/v1/pipes/{truth.pipe.id}/slowest-messages/"
    limits = {"since": times["from"].isoformat(), "until": times["to"].isoformat()}
    found = api.get(path, limits | ({"stage": stage} if stage else {})).json()
    names = ("position", "child", "message_id", "destination", "attempts", "took_us", "bin")
    assert [[one[name] for name in names] for one in found["results"]] == [
        [getattr(one, name) for name in names] for one in page.messages
    ]
    assert (found["measure"], found["is_cut"], found["range"]) == (page.measure, False, "")
    assert [one["position"] for one in found["results"]] == {
        "": ["1-0-3", "1-0-4"], "transmit": ["1-0-4", "1-0-3"], "retry wait": ["1-0-3"], "normalize": ["1-0-3", "1-0-4"]
    }[stage]  # fmt: skip
    assert len(api.get(path, {"range": "1h"}).json()["results"]) == 3, "the other range has one message more"


@pytest.mark.django_db
def test_unknown_stage_is_ignored(alices: Client, truth: Truth):
    page = alices.get(f"/pipes/{truth.pipe.id}/", {"stage": '"><script>alert(1)</script>'}).content.decode()
    assert "alert(1)" not in page
