"""docs/first-webhook.md: from the sign-in link to a delivered GitHub webhook, and a refused one that says why."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, expect

from localbox.testing import ROOT, Box
from tests.e2e.look import Complaints
from tests.e2e.test_first_incident import ARRIVES_MS
from tests.e2e.test_first_pipe import reload_until, sign_in_and_see_it_move
from tests.support.doc_blocks import documented_all
from tests.support.patience import Patience, until

pytestmark = pytest.mark.timeout(900)
TEN_MINUTES_S: Final = 600
LISTED_MS: Final = 90_000  # rejections are reported each minute
SECRET: Final = "a-secret-that-only-github-knows"


def post(url: str, secret: str = SECRET) -> str:
    """Run the tutorial's command; return what it printed."""
    _, command, _ = documented_all("first-webhook.md", "sh")
    for old, new in (("paste the URL of step 3", url), ("python3", sys.executable), (SECRET, secret)):
        assert old in command
        command = command.replace(old, new)
    words = ["bash", "-euc", command]
    done = subprocess.run(words, cwd=ROOT, env={}, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


def give_the_source_a_url(page: Page) -> str:
    page.get_by_label("Sender", exact=True).select_option(label="GitHub")
    page.get_by_label("Signing secret").fill(SECRET)
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Create a URL").click()
    return page.locator("#shown-url").inner_text()


def test_newcomer_receives_a_github_webhook_within_ten_minutes(
    whole_box: Box, chrome: Browser, sample: dict[str, Any], tmp_path: Path
):
    patience = Patience(TEN_MINUTES_S)
    page, complaints = chrome.new_context().new_page(), Complaints()
    complaints.watch(page)
    sign_in_and_see_it_move(page, sample["sign_in_url"])
    page.get_by_role("link", name="New pipe").click()
    page.get_by_label("Pipe name").fill("github")
    page.get_by_role("button", name=re.compile("Use echo endpoint")).click()
    expect(page.get_by_label("URL of destination 1", exact=True)).to_have_value(whole_box.env["PENSTOCK_ECHO_URL"])
    page.get_by_role("button", name="Create pipe").click()
    page.get_by_role("link", name=re.compile("a webhook URL")).click()
    url = give_the_source_a_url(page)

    until(lambda: post(url).startswith("202"), "ingest knows the URL", 120)
    page.get_by_role("link", name=re.compile("^Pipes")).first.click()
    page.get_by_role("link", name="github", exact=True).click()
    attempt = page.locator("#attempts tbody tr").first
    expect(attempt).to_contain_text("delivered", timeout=ARRIVES_MS)
    attempt.locator("td a").first.click()
    expect(page.locator("#journey")).to_contain_text("delivered", timeout=ARRIVES_MS)
    assert not patience.is_over

    assert post(url, "another-secret").startswith("401")
    page.goto(f"{page.url.partition('/messages/')[0]}/settings/")
    page.get_by_role("link", name="Webhooks", exact=True).click()
    reload_until(page, "main", "Signature", LISTED_MS)
    page.screenshot(path=tmp_path / "refused.png", full_page=True)
    page.context.close()
    assert not complaints.found, "\n".join(complaints.found)
