"""A stream-fed table in the browser: a key is looked up, rows are found by prefix, and a token reads them directly."""

import pytest
from playwright.sync_api import Browser, expect

from localbox.testing import Box
from tests.e2e.conftest import said_by
from tests.e2e.incident import begin_incident
from tests.support.patience import until
from tests.support.sender import Sender

pytestmark = pytest.mark.timeout(900)
EVENTS = 60


def test_key_is_looked_up_in_a_stream_fed_table(whole_box: Box, chrome: Browser):
    table = said_by(whole_box, "tests/e2e/scene.py", "table", "readings")["table"]
    to = {"type": "table", "table": "readings", "key": "body.n"}
    story = begin_incident(whole_box, chrome, "meters", {"sources": {"shop": {}}, "destinations": {"latest": to}})
    api = f"{story.base}/api/v1/lookup-tables/{table}"

    story.page.goto(f"{story.base}/tables/{table}/")
    story.sees("Fed by meters, destination latest")
    story.sees("No rows yet. The pipe has not written one.")
    with Sender(story.port, story.key, 20) as sender:
        until(lambda: len(sender.acked) >= EVENTS, "events are accepted", 60)
    sent = len(sender.acked)
    until(lambda: story.page.request.get(f"{api}/status/").json()["rows"] == sent, "each event is a row", 60)

    story.page.reload()
    story.sees(f"{sent} rows")
    story.sees("lag")
    story.fill("Key to look up", "7")
    story.press("Look up")
    expect(story.main.locator("#found")).to_contain_text('"n": 7')
    story.fill("Key to look up", "none")
    story.press("Look up")
    story.sees("No row has the key none.")
    story.fill("Key prefix", "1")
    story.press("Find")
    rows = story.main.get_by_role("region", name="Rows").get_by_role("rowheader")
    expect(rows.first).to_have_text("1")
    keys = sorted(str(n) for n in range(sent) if str(n).startswith("1"))
    assert rows.all_inner_texts() == keys[:50]

    cookies = {str(one["name"]): str(one["value"]) for one in story.page.context.cookies()}
    headers = {"X-CSRFToken": cookies["penstock_csrf"], "Referer": f"{story.base}/"}
    granted = story.page.request.post(f"{api}/access/", headers=headers).json()
    direct = {"authorization": f"Bearer {granted['token']}"}
    found = story.page.request.get(f"{granted['url']}/rows/7", headers=direct).json()
    assert (found["key"], found["row"]["n"]) == ("7", 7)
    assert found["changed_at"]
    story.page.context.close()
    assert story.complaints.found == []
