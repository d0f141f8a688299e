"""Latency on the whole box: a destination that fails and is retried, in the API, the pages and the demo."""

import json
import re
import time
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, expect

from loadgen.scripted import Received, Receiver
from localbox.testing import ROOT, Box
from tests.e2e.conftest import LIVE_MS, said_by
from tests.e2e.look import Complaints, pictures, sign_in
from tests.support.patience import until
from tests.support.sender import Sender

pytestmark = pytest.mark.timeout(900)
INTO: Final = ROOT / "var" / "look"
COUNT: Final = 60
NEGATIVE: Final = re.compile(r"[-\u2212]\d")
CHECK: Final = """
import django; django.setup()
import json, sys
from localbox.demo.ledger import timing_problems
print(json.dumps({"problems": timing_problems(sys.argv[1], int(sys.argv[2]))}))
"""


def timing_of(page: Page, base: str, pipe: str) -> dict[str, Any]:
    answer = page.request.get(f"{base}/api/v1/pipes/{pipe}/timing/?range=1h")
    assert answer.ok, answer.text()
    found: dict[str, Any] = answer.json()
    return found


def retrying(page: Page, home: str) -> int:
    minutes = page.request.get(f"{home}?range=1h&format=jsonl").text().splitlines()
    return sum(int(json.loads(minute)["retrying"]) for minute in minutes)


def delivered(got: list[Received]) -> set[str]:
    return {one.position for one in got if one.answered == 204}


def is_sound(figures: dict[str, int]) -> bool:
    """Return True if no percentile is negative or above a later one or the maximum."""
    in_order = [figures[name] for name in ("p50_us", "p95_us", "p99_us", "max_us")]
    return in_order == sorted(in_order) and in_order[0] >= 0


def check_figures(found: dict[str, Any], count: int) -> None:
    assert found["whole"]["count"] == count
    assert is_sound(found["whole"])
    for node in found["nodes"]:
        assert node["process_duration"]["count"] == node["lag_in"]["count"] == node["lag_out"]["count"] == count, node
        assert is_sound(node["process_duration"]), node
        for name in ("p50_us", "p95_us", "p99_us", "max_us"):
            assert node["lag_in"][name] <= node["lag_out"][name], node
    parts = {part["name"]: part for part in found["parts"]}
    assert all(part["p95_us"] >= 0 and part["mean_us"] >= 0 for part in parts.values())
    assert sum(part["p95_us"] for part in parts.values()) == found["whole"]["p95_us"]
    assert sum(part["mean_us"] for part in parts.values()) == pytest.approx(found["mean_us"], abs=len(parts))
    assert sum(part["share"] for part in parts.values()) == pytest.approx(1)
    assert parts["retry wait"]["share"] > 0.5, "the retry wait is most of the time"
    transmit = next(node for node in found["nodes"] if node["node"] == "transmit:crm")
    assert transmit["process_duration"]["max_us"] < parts["retry wait"]["mean_us"], "node time excludes retry waits"


def check_pages(page: Page, home: str, parts: list[dict[str, Any]]) -> None:
    page.goto(home)
    rows = page.locator("#pie-table tbody tr")
    expect(rows.filter(has_text="retry wait")).to_be_visible()
    shown = rows.evaluate_all("rows => rows.map(row => [row.dataset.name, row.dataset.share])")
    shares = {name: float(share) for name, share in shown}
    assert shares == pytest.approx({part["name"]: part["share"] for part in parts}, abs=1e-4)
    for part in ("#flow", "#pie", "#lag"):
        text = page.locator(part).inner_text()
        assert not NEGATIVE.search(text), text
    expect(page.locator("[data-chart=pie] svg, [data-chart=pie] canvas")).to_be_visible()


def check_minute(page: Page, complaints: Complaints, into: Path) -> None:
    page.locator("#loss tbody th a").first.click()
    breakdown = page.locator("#breakdown")
    wait = breakdown.locator('[data-name="retry wait"]').get_attribute("data-share")
    assert float(wait or 0) > 0.5, "the retry wait is most of the time"
    assert not NEGATIVE.search(breakdown.inner_text())
    pictures(page, complaints, into, "latency-minute")


@pytest.mark.long
def test_retried_destination_shows_correct_durations_in_api_and_pages(
    whole_box: Box, chrome: Browser, receiver: Receiver
):
    base, complaints, path = whole_box.env["PENSTOCK_WEB_URL"], Complaints(), "/latency"
    receiver.answers[path] = 503
    made = said_by(whole_box, "tests/e2e/scene.py", "pipe", "latency", receiver.url(path))
    home = f"{base}/pipes/{made['pipe']}/"
    page = chrome.new_context(storage_state=sign_in(chrome, base, "alice", made["password"])).new_page()
    complaints.watch(page)
    page.goto(home)
    expect(page.locator("#pipe-head")).to_contain_text("live", timeout=LIVE_MS)
    began_s = time.monotonic()
    with Sender(int(whole_box.env["PENSTOCK_INGEST_PORT"]), made["key"], 20) as sender:
        until(lambda: len(sender.acked) >= COUNT, "all are ACKed", 60)
    count = len(sender.positions)

    until(lambda: retrying(page, home) == count, "all wait for a retry", 60)
    receiver.answers[path] = 204
    until(lambda: delivered(receiver.got[path]) == sender.positions, "all are delivered", 180)
    until(lambda: (timing_of(page, base, made["pipe"])["whole"] or {}).get("count") == count, "all are booked", 60)

    found = timing_of(page, base, made["pipe"])
    check_figures(found, count)
    assert found["whole"]["max_us"] < (time.monotonic() - began_s) * 1_000_000
    assert said_by(whole_box, "-c", CHECK, made["pipe"], str(count)) == {"problems": []}
    check_pages(page, home, found["parts"])
    pictures(page, complaints, INTO, "latency")
    check_minute(page, complaints, INTO)
    page.context.close()
    assert complaints.found == []
