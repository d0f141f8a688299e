"""Figures of the home page: each is the number of the page to which it links."""

import re
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries
from rest_framework.test import APIClient

from mgmt.ledger.queries.bucket_range import bucket_at, start_of
from mgmt.models import Pipe, Tenant, User
from mgmt.services import create_pipe
from tests.db.cast import MakeSpec
from tests.db.console.truth import BrowserOf, Truth, go_live, plain
from tests.db.console.undelivered import store_dead

pytestmark = pytest.mark.django_db


def summary_of(browser: Client, path: str = "/") -> str:
    return plain(browser.get(path).text.split('id="summary"')[1].split("</section>")[0].split(">", 1)[1])


def test_summary_counts_what_the_list_of_causes_and_the_api_have(
    alices: Client, api: APIClient, truth: Truth, tenant: Tenant
):
    store_dead(truth.pipe, range(50, 1250), timezone.now(), cause="timeout")
    causes = api.get(f"/api/v1/tenants/{tenant.id}/undelivered/").json()["results"]
    retrying = [one["count"] for one in causes if one["bin"] == "retrying"]
    undelivered = sum(one["count"] for one in causes)
    assert (len(causes), len(retrying), undelivered) == (3, 1, 1202)
    assert summary_of(alices).startswith("2 need attention · 1 retrying · 1202 undelivered 1h 6h 24h ")
    page = alices.get("/").text
    assert '<a class="bad" href="#undelivered">2 need attention</a>' in page
    assert plain(page.split('id="undelivered"')[1]).count("3 causes · 1202 messages") == 1
    listed = page.split('aria-label="Causes"')[1].split("</table>")[0].replace("\u202f", "")
    assert sum(map(int, re.findall(r'data-label="Messages"><a [^>]+>(\d+)<', listed))) == undelivered
    assert page.index('id="undelivered"') < page.index('id="pipes"'), "problems come before pipes"


def test_summary_without_problems_needs_nobody(alices: Client, pipe: Pipe):
    assert summary_of(alices).startswith("0 need attention · 0 retrying · 0 undelivered ")
    assert "Everything is delivered." in alices.get("/").text


def test_home_without_pipes_has_no_figures(browser_of: BrowserOf, charlie: User):
    page = browser_of(charlie).get("/").text
    assert 'id="summary"' not in page
    assert "Create your first pipe" in page


def test_totals_are_those_of_all_pipes(
    alices: Client, truth: Truth, tenant: Tenant, a_spec: MakeSpec, alice: User, bucket: int
):
    other = create_pipe(tenant=tenant, name="refunds", spec=a_spec(), author=alice)
    go_live(other)
    Truth(other).seal(bucket, accepted=11, lost=1)
    Truth(other).moved(bucket_at(timezone.now()) - 1, list(range(100, 160)))
    context = alices.get("/").context
    lines, total = context["figures"].page[0], context["figures"].summary
    assert total.per_s == sum(line.per_s for line in lines) > 0
    assert total.trend.whole.delivered == sum(line.delivered for line in lines) == 7 + 10
    assert total.trend.whole.undelivered == 2 + 1, "the loss in the open minute is not final"
    assert f"Delivered (1 h) {100 * 17 / 20:.1f}% " in summary_of(alices) + " "
    assert alices.get("/", {"q": "refunds"}).context["figures"].summary.trend.whole == total.trend.whole


@pytest.mark.parametrize("span", ["1h", "6h", "24h"])
def test_figures_of_a_pipe_are_those_of_the_page_to_which_they_link(
    alices: Client, truth: Truth, bucket: int, span: str
):
    truth.seal(bucket - 10, accepted=9, lost=2)
    truth.seal(bucket - 200, accepted=30, lost=1)
    truth.lag(bucket - 200, "transmit:crm", "out", [4_000_000] * 30)
    truth.seal(bucket - 1_000, accepted=500)
    home = alices.get("/", {"range": span})
    (line,) = home.context["figures"].page[0]
    hrefs = re.findall(rf'href="(/pipes/{truth.pipe.id}/\?range=[^"]+)"', home.text)
    assert len(hrefs) == 4, "events in, lag, delivered, lost"
    for href in hrefs:
        page = alices.get(href).context
        assert page["span"].name == span
        assert page["get_loss"]().sums["delivered"] == line.delivered
        assert page["get_loss"]().lost_sealed == line.lost_sealed
        assert page["get_timing"]().end_to_end_us == line.lag_p95_us
        assert page["get_graph"]().per_s == pytest.approx(line.per_s, abs=0.1)
    assert line.delivered == {"1h": 14, "6h": 43, "24h": 543}[span]
    assert line.undelivered == 2, "one is dead and one is retrying"


def test_undelivered_of_a_pipe_links_to_its_only_cause_or_to_the_list(alices: Client, pipe: Pipe):
    go_live(pipe)
    store_dead(pipe, range(3), timezone.now())
    row = alices.get("/").text.split('id="pipes"')[1]
    href = re.findall(r'data-label="Undelivered"><a class="bad" href="([^"]+)">3</a>', row)
    assert len(href) == 1
    assert "Dead letters" in alices.get(unescape(href[0])).text
    store_dead(pipe, range(5, 7), timezone.now(), cause="timeout")
    assert 'data-label="Undelivered"><a class="bad" href="#undelivered">5</a>' in alices.get("/").text


def test_sparklines_show_the_rows_and_name_their_range(alices: Client, truth: Truth, bucket: int):
    truth.seal(bucket - 20, accepted=600, lost=60)
    page = alices.get("/")
    (line,) = page.context["figures"].page[0]
    whole = [10 / 60 / len(minutes) for minutes in line.trend.span.parts() if bucket in minutes]
    sealed = [600 / 60 / len(minutes) for minutes in line.trend.span.parts() if bucket - 20 in minutes]
    assert sealed == [2.0], "a whole part of five minutes"
    assert sorted(rate for rate in line.trend.rates if rate) == pytest.approx([*whole, *sealed])
    row = page.text.split('id="pipes"')[1].replace("\u202f", "")
    assert 'role="img" aria-label="Events in per second: 0 to 2.0, last 0"' in row
    assert "<title>Delivered: 77.8% to 90.0%, last 77.8%</title>" in row
    assert 'aria-label="Lag p95: 12ms to 12ms, last 12ms"' in row
    assert "style=" not in row, "the content policy forbids it"


def test_problem_shows_the_failures_of_the_last_hour(alices: Client, truth: Truth, bucket: int):
    truth.fact(bucket - 30, "transmit:crm", "dead", list(range(60, 65)), "rejected")
    truth.fact(bucket - 30, "transmit:crm", "dead", list(range(70, 72)), "timeout")
    truth.fact(bucket - 1_000, "transmit:crm", "dead", list(range(80, 90)), "rejected")
    by_bin = {line.fact.bin: line.recent for line in alices.get("/").context["get_troubles"]()}
    assert sorted(count for count in by_bin["dead"] if count) == [1, 5]
    assert sorted(count for count in by_bin["retrying"] if count) == [1]
    assert 'aria-label="Failures in 5 minutes: 0 to 5, last 0"' in alices.get("/").text


@pytest.mark.parametrize("value", ["", "1y", "15m", "7 days"])
def test_unknown_range_means_the_default(alices: Client, truth: Truth, value: str):
    page = alices.get("/", {"range": value})
    assert page.status_code == 200
    assert page.context["span"].name == "1h"
    assert "Lag p95 (1 h)" in page.text


def test_links_of_home_keep_the_range(alices: Client, truth: Truth):
    page = alices.get("/", {"range": "6h", "sort": "-in"}).text
    assert '<a href="?sort=-in&amp;range=6h" aria-current="true">6h</a>' in page
    assert 'href="?range=6h&amp;sort=-lag">Lag p95 (6 h)</a>' in page
    assert 'data-live="/?part=pipes&amp;range=6h&amp;sort=-in"' in page
    assert 'href="/?range=6h&amp;sort=-in&amp;format=csv"' in page
    assert "Delivered (6 h)" in page


def test_problems_and_sparklines_cost_no_query_for_each_row(
    alices: Client, truth: Truth, django_assert_max_num_queries: DjangoAssertNumQueries
):
    alices.get("/")
    for number in range(6):
        store_dead(truth.pipe, range(200 + 10 * number, 203 + 10 * number), start_of(10**7), cause=f"cause-{number}")
    with django_assert_max_num_queries(34):
        alices.get("/")


def test_pages_of_pipes_by_name_show_the_figures_and_the_totals_of_the_whole_list(
    alices: Client, truth: Truth, tenant: Tenant, a_spec: MakeSpec, alice: User, monkeypatch: pytest.MonkeyPatch
):
    for number in range(4):
        pipe = create_pipe(tenant=tenant, name=f"pipe {number}", spec=a_spec(), author=alice)
        go_live(pipe)
        Truth(pipe).moved(bucket_at(timezone.now()) - 1, [100 + number])
    by_lag = alices.get("/", {"sort": "-lag"}).context["figures"]
    every = {line.pipe.name: (line.delivered, line.lag_p95_us, line.undelivered) for line in by_lag.page[0]}
    monkeypatch.setattr("mgmt.pipes.pages.home.MOST_PIPES", 2)
    for sort in ("name", "-name"):
        names: list[str] = []
        after = ""
        while after or not names:
            figures = alices.get("/", {"sort": sort, "after": after}).context["figures"]
            lines, after = figures.page
            assert len(lines) <= 2
            assert {line.pipe.name: (line.delivered, line.lag_p95_us, line.undelivered) for line in lines}.items() <= (
                every.items()
            )
            assert figures.summary.trend == by_lag.summary.trend
            names += [line.pipe.name for line in lines]
        assert names == sorted(every, reverse=sort == "-name")
    assert len(every) == 5
