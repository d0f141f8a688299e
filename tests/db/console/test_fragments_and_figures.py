"""Fragments are blocks of their page; figures are those of the ledger; names never become markup."""

import re
from html import unescape
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from dataplane.ledger.breakdown import Slice
from mgmt.models import LagRow, Pipe, Tenant, User
from mgmt.services import create_pipe
from tests.db.cast import MakeSpec
from tests.db.console.truth import BrowserOf, Truth

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
PIPE_PARTS = ["head", "flow", "plots", "pie", "slowest", "shares", "lag", "loss", "attempts"]
SCRIPT = "<script>alert(1)</script>"


def plain(html: str) -> str:
    """Return the HTML without the CSRF token and with white space collapsed."""
    return re.sub(r"\s+", " ", re.sub(r'name="csrfmiddlewaretoken" value="[^"]*"', "", html)).strip()


def live_ids(html: str) -> list[str]:
    """Return the ids of the live blocks."""
    return re.findall(r' id="([^"]+)"[^>]* data-live=', html)


@pytest.mark.parametrize("part", PIPE_PARTS)
def test_fragment_of_the_pipe_page_is_a_block_of_the_page(
    browser_of: BrowserOf, alice: User, truth: Truth, part: str, monkeypatch: pytest.MonkeyPatch
):
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)  # both requests in the same minute
    browser, url = browser_of(alice), reverse("console:pipe", args=[truth.pipe.id])
    page, fragment = browser.get(url), browser.get(url, {"part": part}, headers=HTMX)
    assert fragment.status_code == 200
    assert "<html" not in fragment.content.decode()
    assert plain(fragment.content.decode()) in plain(page.content.decode())


@pytest.mark.parametrize("part", ["undelivered", "pipes"])
def test_fragment_of_home_is_a_block_of_home(browser_of: BrowserOf, alice: User, truth: Truth, part: str):
    browser = browser_of(alice)
    fragment = plain(browser.get("/", {"part": part}, headers=HTMX).content.decode())
    assert fragment
    assert fragment in plain(browser.get("/").content.decode())


def test_one_request_returns_all_live_blocks_of_a_page(
    browser_of: BrowserOf, alice: User, truth: Truth, monkeypatch: pytest.MonkeyPatch
):
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    browser = browser_of(alice)
    for url in ("/", f"/pipes/{truth.pipe.id}/", f"/pipes/{truth.pipe.id}/attempts/", f"/pipes/{truth.pipe.id}/held/"):
        page = browser.get(url).text
        live = [unescape(found) for found in re.findall(r'data-live="([^"]+)"', page)]
        assert len(live) > 1
        assert {urlsplit(one).path for one in live} == {url}, "one page has all blocks"
        query = dict(pair for one in live for pair in parse_qsl(urlsplit(one).query))
        names = ",".join(parse_qs(urlsplit(one).query)["part"][0] for one in live)
        answer = browser.get(url, query | {"part": names}, headers=HTMX).text
        assert "<html" not in answer
        assert live_ids(answer) == live_ids(page)


def test_unknown_blocks_are_left_out_of_a_refresh(browser_of: BrowserOf, alice: User, truth: Truth):
    answer = browser_of(alice).get("/", {"part": "summary,nothing,pipes"}, headers=HTMX).text
    assert live_ids(answer) == ["summary", "pipes"]
    assert "<html" in browser_of(alice).get("/", {"part": "nothing"}, headers=HTMX).text


def test_part_without_htmx_returns_the_whole_page(browser_of: BrowserOf, alice: User, pipe: Pipe):
    assert "<html" in browser_of(alice).get(f"/pipes/{pipe.id}/", {"part": "loss"}).content.decode()


def test_home_lists_undelivered_messages_with_cause_and_bin(browser_of: BrowserOf, alice: User, truth: Truth):
    page = plain(browser_of(alice).get("/").content.decode())
    assert "Not delivered" in page
    assert "crm: returned 401" in page
    assert "crm: timed out" in page
    assert '<span class="wait">retrying</span>' not in page.split('id="pipes"')[0]


def test_home_reports_that_everything_is_delivered(browser_of: BrowserOf, alice: User, pipe: Pipe):
    assert "Everything is delivered." in browser_of(alice).get("/").content.decode()


def test_home_filters_pipes_by_name(browser_of: BrowserOf, alice: User, pipe: Pipe, tenant: Tenant, a_spec: MakeSpec):
    create_pipe(tenant=tenant, name="refunds", spec=a_spec(), author=alice)
    page = browser_of(alice).get("/", {"q": "REF"}).content.decode()
    assert "refunds" in page
    assert ">orders<" not in page


def test_loss_table_counts_each_bin(browser_of: BrowserOf, alice: User, truth: Truth):
    block = browser_of(alice).get(f"/pipes/{truth.pipe.id}/", {"part": "loss"}, headers=HTMX).content.decode()
    foot = re.findall(r"<td[^>]*>(\d+)</td>", block.split("<tfoot>")[1])
    #                accepted delivered filtered dead retrying queued lost unacked late
    assert foot == ["10", "7", "0", "1", "1", "0", "1", "0", "0"]


def test_sealed_minute_shows_its_seal_instead_of_the_current_rows(
    browser_of: BrowserOf, alice: User, truth: Truth, bucket: int
):
    truth.seal(bucket, accepted=10, lost=3)
    block = browser_of(alice).get(f"/pipes/{truth.pipe.id}/", {"part": "loss"}, headers=HTMX).content.decode()
    assert "sealed" in block
    assert re.findall(r"<td[^>]*>(\d+)</td>", block.split("<tfoot>")[1])[:2] == ["10", "7"]
    assert ">3</a>" in block


def test_minute_page_names_the_lost_message(browser_of: BrowserOf, alice: User, truth: Truth, bucket: int):
    url = reverse("console:minute", args=[truth.pipe.id, bucket])
    assert "<code>1-0-9</code>" in browser_of(alice).get(url, {"bin": "lost"}).content.decode()


def test_breakdown_adds_up_to_the_time_from_ingest_to_the_response(browser_of: BrowserOf, alice: User, truth: Truth):
    block = browser_of(alice).get(f"/pipes/{truth.pipe.id}/", {"part": "pie"}, headers=HTMX).content.decode()
    shares = [float(share) for share in re.findall(r'data-share="([\d.]+)"', block)]
    assert sum(shares) == pytest.approx(1, abs=1e-5)
    assert block.split("<tfoot>")[1].count("12\u202fms") == 2, "mean and p95"
    assert "process queue" in block


def test_source_clock_ahead_is_a_badge_and_not_part_of_the_breakdown(
    browser_of: BrowserOf, alice: User, truth: Truth, bucket: int
):
    truth.lag(bucket, "transmit:crm", "in", [-3_005_000] * 7)
    truth.lag(bucket, "transmit:crm", "out", [-2_998_000] * 7)
    truth.delivered(bucket, {Slice.INGEST: 2_000, Slice.TRANSMIT: 8_000}, source_us=-3_010_000, count=7)
    page = browser_of(alice).get(f"/pipes/{truth.pipe.id}/").content.decode()
    assert "clock skew" in page
    assert not re.findall(r">\s*-\d", page), "no figure is negative"
    assert "10\u202fms" in page.split('id="pie-table"')[1].split("<tfoot>")[1]


def test_retries_are_a_slice_and_no_duration_is_negative(browser_of: BrowserOf, alice: User, truth: Truth, bucket: int):
    """Half the deliveries took a minute: differences of percentiles once showed -10.3 s here."""
    truth.delivered(bucket, {Slice.INGEST: 1_000, Slice.RETRY: 60_000_000, Slice.TRANSMIT: 7_000}, count=7)
    block = browser_of(alice).get(f"/pipes/{truth.pipe.id}/", {"part": "pie"}, headers=HTMX).content.decode()
    took = dict(re.findall(r'data-name="([^"]+)" data-share="([\d.]+)"', block))
    assert float(took["retry wait"]) > 0.99
    assert all(float(share) >= 0 for share in took.values())


def test_minutes_of_an_earlier_release_show_lags_without_durations(
    browser_of: BrowserOf, alice: User, truth: Truth, bucket: int
):
    """Their lags on arrival and on departure are of different messages, so that no difference is valid."""
    LagRow.objects.update(own=None, breakdown=None)
    browser = browser_of(alice)
    page = browser.get(f"/pipes/{truth.pipe.id}/", {"part": "lag"}, headers=HTMX).content.decode()
    row = page.split("transmit:crm")[1].split("</tr>")[0]
    assert re.findall(r"<td[^>]*>([^<]*)</td>", row)[8:12] == ["-"] * 4
    pie = browser.get(f"/pipes/{truth.pipe.id}/", {"part": "pie"}, headers=HTMX).content.decode()
    assert "Nothing was delivered in this time range." in pie


def test_minute_page_shows_the_breakdown(browser_of: BrowserOf, alice: User, truth: Truth, bucket: int):
    page = browser_of(alice).get(reverse("console:minute", args=[truth.pipe.id, bucket])).content.decode()
    assert "Delivery time by stage" in page
    assert "transmit queue" in page


def test_attempts_are_filtered_by_url_parameters(browser_of: BrowserOf, alice: User, truth: Truth):
    page = browser_of(alice).get(f"/pipes/{truth.pipe.id}/attempts/", {"outcome": "dead"}).content.decode()
    rows = page.split("<tbody>")[1]
    assert ">401<" in rows
    assert ">204<" not in rows


def test_script_in_a_name_is_escaped_on_every_page(
    browser_of: BrowserOf, alice: User, tenant: Tenant, a_spec: MakeSpec
):
    pipe: Pipe = create_pipe(tenant=tenant, name=SCRIPT, spec=a_spec(), author=alice)
    browser = browser_of(alice)
    pages = ["", "edit/", "close/", "attempts/", "revisions/", "settings/"]
    for url in ["/", "/?q=<script>alert(1)</script>", *(f"/pipes/{pipe.id}/{page}" for page in pages)]:
        html = browser.get(url).content.decode()
        assert SCRIPT not in html, url
        assert "&lt;script&gt;" in html, url


def test_empty_pipe_shows_instructions_with_its_endpoint(
    browser_of: BrowserOf, alice: User, pipe: Pipe, settings: Settings
):
    page = browser_of(alice).get(f"/pipes/{pipe.id}/").content.decode()
    assert f"{settings.PENSTOCK_INGEST_URL}/v1/events" in page
    assert "Starting" in page
