"""A database in the browser: added in the editor, refused with a wrong password, and complete with the right one."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from loadgen.scripted import Receiver
from localbox.testing import Box
from tests.e2e.incident import begin_incident
from tests.e2e.look import pictures
from tests.e2e.test_first_pipe import INTO, reload_until
from tests.support.patience import until
from tests.support.postgres_server import DATABASE, HOST, PASSWORD, USER, PostgresServer
from tests.support.sender import Sender
from tests.support.trust import Trust

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
EVENTS = 120
REFUSED_MS = 90_000


def test_events_are_rows_of_a_database_once_its_password_is_right(
    whole_box: Box, chrome: Browser, receiver: Receiver, tmp_path: Path
):
    to = {"type": "http", "url": receiver.url("/fine")}
    story = begin_incident(whole_box, chrome, "rows", {"sources": {"shop": {}}, "destinations": {"crm": to}})
    page, main, trust = story.page, story.main, Trust(tmp_path)
    with PostgresServer(trust) as server:
        server.make_table("orders", "position bigint, child int, n int, PRIMARY KEY (position, child)")
        page.goto(f"{story.base}/pipes/{story.id}/edit/")
        main.get_by_role("button", name="Add destination", exact=True).click()
        page.get_by_label("Type of destination 2", exact=True).select_option("postgres")
        story.fill("Name of destination 2", "db")
        story.fill("Host of destination 2", HOST)
        story.fill("Port of destination 2", str(server.port))
        story.fill("Database of destination 2", DATABASE)
        story.fill("User of destination 2", USER)
        story.fill("Table of destination 2", "orders")
        story.fill("Columns of destination 2", "position: meta.position\nchild: meta.child\nn: body.n")
        story.fill("CA certificates (optional) of destination 2", trust.ca_file.read_text())
        pictures(page, story.complaints, INTO, "editor-database")
        story.press(re.compile("^Publish"))
        until(lambda: story.read("")["live_revision"] == 2, "the revision is live", 120)

        page.goto(f"{story.base}/pipes/{story.id}/destinations/db/")
        story.sees("The secret is missing: requests fail until you enter it.")
        story.fill("Password", "another password")
        story.press("Save secret")
        with Sender(story.port, story.key, 40) as sender:
            until(lambda: len(sender.acked) >= EVENTS, "events are accepted", 60)
            reload_until(page, "main", "password authentication failed", REFUSED_MS)
            pictures(page, story.complaints, INTO, "database-refused")
            assert server.rows("SELECT count(*) FROM orders") == [(0,)]
            story.fill("Password", PASSWORD)
            story.press("Replace secret")
        sent = len(sender.acked)
        numbers = "SELECT n FROM orders ORDER BY n"
        until(lambda: server.rows(numbers) == [(n,) for n in range(sent)], "each event is one row", 180)
        until(lambda: story.bins().get("delivered") == 2 * sent, "the ledger says so", 90, seen=story.bins)
        assert {name: count for name, count in story.bins().items() if count} == {"delivered": 2 * sent}
        page.reload()
        expect(main).to_contain_text("The secret is stored")
        expect(main).to_contain_text("required, with a certificate of 127.0.0.1 from the CA of this destination")
        pictures(page, story.complaints, INTO, "database")
    page.context.close()
    assert story.complaints.found == []
