"""Minutes selected in the URL of a pipe's page: all blocks show them, and hostile values are ignored."""

import re
from datetime import timedelta

import pytest
from django.test import Client

from mgmt.ledger.queries.bucket_range import bucket_at, start_of
from tests.db.console.truth import Truth, exported

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
FORM = "%Y-%m-%dT%H:%M"


@pytest.fixture
def two_minutes(truth: Truth, bucket: int) -> Truth:
    """The minute of `truth`, and three delivered messages ten minutes before it."""
    truth.fact(bucket - 10, "ingest", "sent", [100, 101, 102], "acked")
    truth.fact(bucket - 10, "ingest", "sent", [100, 101, 102], "seen")
    truth.fact(bucket - 10, "process", "sent", [100, 101, 102])
    truth.fact(bucket - 10, "transform:crm", "sent", [100, 101, 102])
    truth.fact(bucket - 10, "transmit:crm", "delivered", [100, 101, 102])
    truth.lag(bucket - 10, "transmit:crm", "out", [500_000] * 3)
    return truth


def minute(bucket: int, count: int = 1) -> dict[str, str]:
    return {"from": start_of(bucket).strftime(FORM), "to": start_of(bucket + count).strftime(FORM)}


def part(browser: Client, truth: Truth, name: str, **query: str) -> str:
    html = browser.get(f"/pipes/{truth.pipe.id}/", {"part": name, **query}, headers=HTMX).content.decode()
    return re.sub(r"\s+", " ", html.replace("\u202f", " "))


def delivered(block: str) -> str:
    return str(re.findall(r"<td[^>]*>(\d+)</td>", block.split("<tfoot>")[1])[1])


def test_all_blocks_show_the_selected_minutes(alices: Client, two_minutes: Truth, bucket: int):
    chosen = minute(bucket - 10)
    assert delivered(part(alices, two_minutes, "loss")) == "10"
    assert delivered(part(alices, two_minutes, "loss", **chosen)) == "3"
    assert delivered(part(alices, two_minutes, "loss", **minute(bucket))) == "7"
    assert "500 ms" in part(alices, two_minutes, "lag", **chosen)
    assert "12 ms" not in part(alices, two_minutes, "lag", **chosen)
    assert "Nothing was delivered in this time range." in part(alices, two_minutes, "pie", **chosen)
    assert "No recorded attempts in this time range." in part(alices, two_minutes, "slowest", **chosen)
    rows = exported(alices, f"/pipes/{two_minutes.pipe.id}/", **chosen)
    assert [row["delivered"] for row in rows] == [3]


def test_live_blocks_and_links_keep_the_selection_and_the_clear_link_does_not(
    alices: Client, two_minutes: Truth, bucket: int
):
    chosen = minute(bucket)
    page = alices.get(f"/pipes/{two_minutes.pipe.id}/", {"range": "15m", **chosen}).content.decode()
    kept = f"range=15m&amp;from={chosen['from'].replace(':', '%3A')}&amp;to={chosen['to'].replace(':', '%3A')}"
    for name in ("flow", "plots", "pie", "slowest", "shares", "lag", "loss"):
        assert f"?part={name}&amp;{kept}" in page, name
    assert f'href="?{kept}&amp;format=csv"' in page
    assert f'href="?{kept}&amp;stage=transmit#slowest"' in page
    assert '<a href="?range=15m">Clear selection</a>' in page
    for name, value in chosen.items():
        assert f'name="{name}" required value="{value}"' in page


def test_plots_keep_their_range_around_a_selection_within_it(alices: Client, two_minutes: Truth, bucket: int):
    inside = part(alices, two_minutes, "plots", range="15m", **minute(bucket)).split("</table>")[0]
    assert inside.count("<tr data-at") == 15
    before = part(alices, two_minutes, "plots", range="15m", **minute(bucket - 60, 10)).split("</table>")[0]
    assert before.count("<tr data-at") == 10
    assert f'data-at="{start_of(bucket - 60).isoformat()}"' in before


@pytest.mark.parametrize(
    ("since", "until"),
    [
        ("2026-05-03T11:16", ""),
        ("", "2026-05-03T11:16"),
        ("9999-12-31T23:58", "9999-12-31T23:59"),
        ("0001-01-01T00:00", "0001-01-01T00:01"),
        ("'; DROP TABLE mgmt_pipe; --", "x"),
        ("\x00", "\x00"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
    ],
)
def test_hostile_selection_is_ignored_and_reported(alices: Client, two_minutes: Truth, since: str, until: str):
    answer = alices.get(f"/pipes/{two_minutes.pipe.id}/", {"from": since, "to": until})
    assert answer.status_code == 200
    page = answer.content.decode()
    assert "The selection is ignored: " in page
    assert "Clear selection" not in page
    assert "alert(1)" not in page
    assert delivered(part(alices, two_minutes, "loss", **{"from": since, "to": until})) == "10"


def test_too_long_selection_is_refused(alices: Client, two_minutes: Truth, bucket: int):
    since = start_of(bucket) - timedelta(hours=25)
    chosen = minute(bucket_at(since), 25 * 60)
    page = alices.get(f"/pipes/{two_minutes.pipe.id}/", chosen).content.decode()
    assert "it has more than 24 hours" in page
