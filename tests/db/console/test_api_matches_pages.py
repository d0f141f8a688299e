"""Each number that a page shows is in the API, and both are equal: the same queries read the same rows."""

from dataclasses import astuple
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from mgmt.ledger.queries.timing import Timing
from tests.db.console.truth import Truth, exported

pytestmark = pytest.mark.django_db


@pytest.fixture
def base(truth: Truth) -> str:
    return f"/api/v1/pipes/{truth.pipe.id}"


def in_minutes(truth: Truth, bucket: int) -> None:
    """Store a sealed minute and an open one before the minute of the fixture."""
    truth.moved(bucket - 1, [20, 21])
    truth.lag(bucket - 1, "normalize", "out", [9_000, 9_000])
    truth.seal(bucket - 2, accepted=5, lost=2)


def test_minutes_are_those_of_the_pipe_page(alices: Client, api: APIClient, truth: Truth, base: str, bucket: int):
    in_minutes(truth, bucket)
    page = exported(alices, reverse("console:pipe", args=[truth.pipe.id]))
    found = api.get(f"{base}/minutes/").json()
    assert [line["minute"] for line in found["results"]] == [bucket, bucket - 1, bucket - 2]
    assert len(page) == found["minutes"] == 3
    for of_page, of_api in zip(page, found["results"], strict=True):
        assert of_page["minute"][:19] == of_api["starts"][:19]
        assert {name: of_page[name] for name in of_api["bins"]} == of_api["bins"]
        assert {name: of_page[name] for name in ("accepted", "unacked", "late")}.items() <= of_api.items()
        assert of_page["loss_share"] == of_api["loss"]["share"]
        assert bool(of_page["sealed_at"]) == bool(of_api["sealed_at"]) == (of_api["bins_at_seal"] is not None)
    assert found["results"][0]["bins"] == {
        "delivered": 7, "filtered": 0, "duplicate": 0, "dead": 1, "cancelled": 0, "held": 0, "retrying": 1, "queued": 0,
        "lost": 1,
    }  # fmt: skip
    assert found["total"]["bins"] == {name: sum(line[name] for line in page) for name in found["total"]["bins"]}


def test_pages_of_minutes_have_no_gap_in_either_direction(api: APIClient, truth: Truth, base: str, bucket: int):
    in_minutes(truth, bucket)
    first = api.get(f"{base}/minutes/?limit=2").json()
    second = api.get(first["next"]).json()
    assert [line["minute"] for line in first["results"] + second["results"]] == [bucket, bucket - 1, bucket - 2]
    assert (first["previous"], second["next"]) == (None, None)
    assert api.get(second["previous"]).json()["results"] == first["results"]
    assert second["total"] == first["total"], "the total covers the range, not the page"


def test_one_minute_is_that_of_its_page(alices: Client, api: APIClient, truth: Truth, base: str, bucket: int):
    page = alices.get(reverse("console:minute", args=[truth.pipe.id, bucket]))
    line, shown = page.context["line"], page.context["timing"]
    found = api.get(f"{base}/minutes/{bucket}/").json()
    assert (found["accepted"], found["unacked"], found["late"]) == (line.accepted, line.unacked, line.late)
    assert (found["bins"], found["bins_at_seal"]) == (line.bins, line.at_seal)
    loss = found["loss"]
    assert (loss["due"], loss["lost"], loss["share"]) == (line.loss.due, line.loss.lost, line.loss.share)
    assert [(node["node"], node["lost"]) for node in loss["nodes"]] == [(one.node, one.lost) for one in line.loss.nodes]
    assert [part["name"] for part in found["destinations"]] == [part.name for part in line.destinations]
    assert_nodes(found["nodes"], shown)
    assert api.get(f"{base}/minutes/{bucket - 100}/").json()["accepted"] == 0


@pytest.mark.parametrize("name", ["lost", "dead", "delivered", "held"])
def test_units_of_a_bin_are_those_of_the_minute_page(
    alices: Client, api: APIClient, truth: Truth, base: str, bucket: int, name: str
):
    page = alices.get(reverse("console:minute", args=[truth.pipe.id, bucket]), {"bin": name}).context
    found = api.get(f"{base}/minutes/{bucket}/units/", {"bin": name}).json()
    shown = [astuple(unit) for unit in page["units"]]
    keys = ("position", "destination", "child", "last_seen", "last_seen_words")
    assert [tuple(unit[key] for key in keys) for unit in found["results"]] == shown
    assert found["more"] == page["more"] == 0
    assert len(shown) == {"lost": 1, "dead": 1, "delivered": 7, "held": 0}[name]
    assert api.get(f"{base}/minutes/{bucket}/units/", {"bin": "delivered", "limit": "3"}).json()["more"] == 4


def test_timing_is_that_of_the_pipe_page(alices: Client, api: APIClient, truth: Truth, base: str, bucket: int):
    in_minutes(truth, bucket)

    def both() -> tuple[Timing, dict[str, Any]]:
        page = alices.get(reverse("console:pipe", args=[truth.pipe.id]))
        return page.context["get_timing"](), api.get(f"{base}/timing/").json()

    shown, found = both()
    if found["series"][0]["minute"] != shown.series.buckets[0]:  # a minute began between the two requests
        shown, found = both()
    assert_nodes(found["nodes"], shown)
    assert [(part["name"], part["p95_us"], part["mean_us"]) for part in found["parts"]] == [
        (part.name, part.took_us, part.mean_us) for part in shown.pie
    ]
    assert [one["minute"] for one in found["series"]] == list(shown.series.buckets)
    assert [list(one["shares"].values()) for one in found["series"]] == [
        [value for value in values if value is not None] for values in shown.series.values
    ]
    assert (found["end_to_end_us"], found["skewed"]) == (shown.end_to_end_us, shown.skewed)
    assert shown.end_to_end_us


def test_lag_of_a_minute_is_that_of_its_page(alices: Client, api: APIClient, truth: Truth, base: str, bucket: int):
    in_minutes(truth, bucket)
    found = api.get(f"{base}/lag/").json()["results"]
    assert [line["minute"] for line in found] == [bucket, bucket - 1]
    for line in found:
        page = alices.get(reverse("console:minute", args=[truth.pipe.id, line["minute"]]))
        assert_nodes(line["nodes"], page.context["timing"])
    assert found[1]["nodes"][0]["lag_out"]["p50_us"] == pytest.approx(9_000, rel=0.01)
    first = api.get(f"{base}/lag/?limit=1").json()
    assert [first["results"][0], api.get(first["next"]).json()["results"][0]] == found


def assert_nodes(found: list[dict[str, Any]], shown: Timing) -> None:
    """Assert that the API's lags of each node are those of the page."""
    assert [node["node"] for node in found] == [node.node for node in shown.nodes]
    columns = {"lag_in": "lag_in", "lag_out": "lag_out", "process_duration": "own"}
    for of_api, of_page in zip(found, shown.nodes, strict=True):
        for name, column in columns.items():
            expected = getattr(of_page, column)
            keys = ("p50", "p95", "p99", "max")
            got = of_api[name] and [of_api[name][f"{key}_us"] for key in keys] + [of_api[name]["count"]]
            assert got == (expected and [*(getattr(expected, key) for key in keys), expected.count])
