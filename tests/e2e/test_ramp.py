"""A ramp is watched step by step to all keys; a bad revision is rolled back automatically without loss."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from loadgen.scripted import Receiver
from localbox.testing import Box
from tests.e2e.conftest import LIVE_MS, said_by
from tests.e2e.editing import add_step
from tests.e2e.look import Complaints, sign_in
from tests.support.box_shell import delivered_count
from tests.support.patience import MOST_STRETCH, Patience, until
from tests.support.sender import Sender

pytestmark = pytest.mark.timeout(900)
PER_S = 50
RECENT = 600  # messages of the last hour, without which no step would have enough evidence in time
STEPS_MS, BEGINS_S = 180_000, 180
GOES_BACK_S = 120


def publish(page: Page, home: str, number: int) -> None:
    page.get_by_role("button", name=f"Publish revision {number}").click()
    page.wait_for_url(home)
    page.get_by_role("link", name="Revisions").click()
    ramp = page.locator(f'a[href$="/revisions/{number}/ramp/"]').first

    def begun() -> bool:
        page.reload()
        return ramp.is_visible()

    until(begun, f"the ramp of revision {number} begins, once its cell is stable", BEGINS_S)
    ramp.click()
    expect(page.get_by_role("heading", name=f"Ramp of ramped@{number}")).to_be_visible()


def test_ramp_is_watched_to_its_end_and_a_bad_revision_is_rolled_back_on_screen(
    whole_box: Box, chrome: Browser, receiver: Receiver
):
    base, complaints, got = whole_box.env["PENSTOCK_WEB_URL"], Complaints(), receiver.got["/ramped"]
    port = int(whole_box.env["PENSTOCK_INGEST_PORT"])
    made = said_by(whole_box, "tests/e2e/scene.py", "pipe", "ramped", receiver.url("/ramped"))
    home = f"{base}/pipes/{made['pipe']}/"
    page = chrome.new_context(storage_state=sign_in(chrome, base, "alice", made["password"])).new_page()
    complaints.watch(page)
    page.goto(home)
    expect(page.locator("#pipe-head")).to_contain_text("live", timeout=LIVE_MS)
    with Sender(port, made["key"], PER_S) as sender:
        until(lambda: len(got) > RECENT, "enough messages for a ramp", 60)
        page.goto(f"{home}edit/")
        add_step(page, 1, "rename", "note", "New path").fill("words")
        publish(page, home, 2)
        ramp = page.locator("#ramp")
        expect(ramp).to_contain_text("It went live at", timeout=STEPS_MS)
        for share in ("25 %", "50 %", "100 %"):
            expect(ramp.get_by_role("rowheader", name=share, exact=True)).to_be_visible()

        page.goto(f"{home}edit/")
        add_step(page, 2, "cast", "words", "Type").select_option("int")
        publish(page, home, 3)
        patience = Patience(GOES_BACK_S)
        expect(ramp).to_contain_text("automatically", timeout=GOES_BACK_S * MOST_STRETCH * 1_000)
        assert not patience.is_over
        expect(ramp).to_contain_text(re.compile(r"\d+ of its \d+ messages failed at \d+ % of the keys"))

    def dead() -> set[str]:
        file = page.request.get(f"{home}revisions/3/ramp/?bin=dead&format=csv")
        return {line.split(",")[0] for line in file.text().splitlines()[1:]}

    until(lambda: dead() | {one.position for one in got} == sender.positions, "each is delivered or named as dead", 90)
    until(lambda: delivered_count(whole_box, "ramped") + len(dead()) >= len(sender.positions), "the ledger has all", 60)
    assert 0 < len(dead()) < len(sender.positions) / 4
    with Sender(port, made["key"], PER_S) as later:
        until(lambda: len(later.acked) > 2 * PER_S, "every partition has an event behind the others", 60)
    until(lambda: later.positions <= {one.position for one in got}, "the later ones are delivered", 90)
    count = len(sender.positions) + len(later.positions)
    assert len(got) + len(dead()) == count, "each is delivered once, and no dead one is delivered"
    page.goto(home)
    expect(page.locator("#pipe-head")).to_contain_text("Revision 2 continues to process all keys")
    page.context.close()
    assert complaints.found == []
