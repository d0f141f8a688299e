"""Pages of stream-fed look-up tables: feeds, figures, look-up by key, rows by prefix, and hosts that do not answer."""

import html
import re
import time
from datetime import UTC, datetime

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from dataplane.tables.lookups import VERSIONS_PER_US
from dataplane.tables.query_protocol import MOST_READ, TableAnswer
from mgmt.lookups.queries import status, table_hosts
from mgmt.models import LookupTable, Pipe, PipeRevision, Tenant, User
from mgmt.services import create_lookup_table, create_pipe
from tests.db.cast import MakeSpec
from tests.db.console.truth import BrowserOf
from tests.support.table_service import TableService

pytestmark = pytest.mark.django_db
VERSION = int(datetime(2026, 11, 27, 12, 0, tzinfo=UTC).timestamp() * 1_000_000) * VERSIONS_PER_US


@pytest.fixture
def table(tenant: Tenant) -> LookupTable:
    return create_lookup_table(tenant=tenant, name="users")


@pytest.fixture
def feeding(tenant: Tenant, alice: User, table: LookupTable, a_spec: MakeSpec) -> Pipe:
    spec = a_spec() | {"destinations": {"people": {"type": "table", "table": "users", "key": "body.id"}}}
    return create_pipe(tenant=tenant, name="sign-ups", spec=spec, author=alice)


@pytest.fixture
def on_hosts(hosts: TableService, table: LookupTable, feeding: Pipe) -> TableService:
    rows: dict[str, tuple[int, str | None]] = {f"u-{n:03}": (VERSION, f'{{"n":{n}}}') for n in range(60)}
    hosts.fill(table.id, table.tenant_id, table.name, rows | {"v/<b>": (VERSION, '{"n":"<i>"}')})
    return hosts


@pytest.fixture
def page(table: LookupTable) -> str:
    return reverse("console:table", args=[table.id])


@pytest.fixture
def alices(browser_of: BrowserOf, alice: User, tenant: Tenant) -> Client:
    return browser_of(alice)


def text_of(browser: Client, url: str, **query: str) -> str:
    """Return the text of a page, without tags."""
    answer = browser.get(url, query)
    assert answer.status_code == 200
    plain = re.sub(r"<(script|style).*?</\1>", " ", answer.content.decode(), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", plain)).split())


def test_page_shows_feed_rows_last_change_and_lag(alices: Client, page: str, feeding: Pipe, on_hosts: TableService):
    shown = text_of(alices, page)
    assert "Fed by sign-ups , destination people" in shown
    assert re.search(r"61 rows · last change .*2026.* · lag [\d.]+\Ws", shown)
    assert "u-049" in shown
    assert "u-050" not in shown
    content = alices.get(page).content.decode()
    assert reverse("console:destination", args=[feeding.id, "people"]) in content


def test_list_shows_feed_rows_and_lag(alices: Client, table: LookupTable, on_hosts: TableService):
    shown = text_of(alices, reverse("console:tables"))
    assert re.search(r"users 61 sign-ups .* [\d.]+\Ws ", shown)


def test_key_is_looked_up(alices: Client, page: str, on_hosts: TableService):
    assert "u-007 changed 2026" in text_of(alices, page, key="u-007")
    assert '"n": 7' in text_of(alices, page, key="u-007")
    assert "No row has the key missing" in text_of(alices, page, key="missing")
    content = alices.get(page, {"key": "v/<b>"}).content.decode()
    assert "<b>" not in content
    assert "&lt;i&gt;" in content


def test_rows_are_searched_by_prefix_and_paginated(alices: Client, page: str, on_hosts: TableService):
    second = text_of(alices, page, q="u-", after="u-049")
    assert "u-059" in second
    assert "u-049" not in second
    assert "v/<b>" not in text_of(alices, page, q="u-")
    assert "No key has this prefix" in text_of(alices, page, q="none")


def test_rows_cannot_be_entered_while_a_pipe_writes_them(alices: Client, page: str, on_hosts: TableService):
    shown = text_of(alices, page)
    assert not any(words in shown for words in ("Upload a file", "Add row", "Remove"))
    answer = alices.post(page, {"action": "put", "key": "a", "row": "{}"})
    assert answer.status_code == 409
    assert "writes the rows of users" in answer.content.decode()


def test_rows_can_be_entered_after_the_pipe_has_ended(alices: Client, page: str, feeding: Pipe, on_hosts: TableService):
    PipeRevision.objects.filter(pipe=feeding).update(state="retired")
    shown = text_of(alices, page)
    assert "No longer fed by a pipe" in shown
    assert "Add row" in shown
    assert "u-001" in shown


def test_row_that_a_pipe_wrote_can_be_changed_after_its_end(
    alices: Client, page: str, table: LookupTable, feeding: Pipe, on_hosts: TableService
):
    on_hosts.fill(table.id, table.tenant_id, table.name, {"manual": (7, "{}")})
    PipeRevision.objects.filter(pipe=feeding).update(state="retired")
    content = alices.get(page).content.decode()
    assert "Remove row manual" in content
    assert "Remove row u-001" in content


def test_list_does_not_wait_for_slow_hosts_table_by_table(
    alices: Client,
    tenant: Tenant,
    alice: User,
    on_hosts: TableService,
    a_spec: MakeSpec,
    monkeypatch: pytest.MonkeyPatch,
):
    names = [f"more-{number}" for number in range(4)]
    for name in names:
        create_lookup_table(tenant=tenant, name=name)
    to = {name: {"type": "table", "table": name, "key": "body.id"} for name in names}
    create_pipe(tenant=tenant, name="many", spec=a_spec() | {"destinations": to}, author=alice)
    asked: list[str] = []

    def answer_slowly(table: LookupTable) -> TableAnswer:
        asked.append(table.name)
        time.sleep(0.1)
        return TableAnswer(table.id, 1, None, 0.5)

    monkeypatch.setattr(status, "read_state", answer_slowly)
    monkeypatch.setattr(status, "MOST_S", 0.15)
    assert "hosts of the data plane respond slowly" in text_of(alices, reverse("console:tables"))
    assert len(asked) == 2


def test_empty_table_says_that_the_pipe_has_written_no_row(
    alices: Client, page: str, table: LookupTable, feeding: Pipe, hosts: TableService
):
    hosts.fill(table.id, table.tenant_id, table.name, {})
    shown = text_of(alices, page)
    assert "0 rows" in shown
    assert "The pipe has not written one" in shown


def test_pages_say_that_no_host_answers(alices: Client, page: str, feeding: Pipe):
    for url in (page, f"{page}?key=u-1", reverse("console:tables")):
        assert "rows of look-up table users cannot be read now" in text_of(alices, url)
    assert "The row cannot be read now" in text_of(alices, page, key="u-1")
    assert "Fed by sign-ups" in text_of(alices, page)
    assert alices.get(page, {"format": "csv"}).status_code == 503


def test_page_without_hosts_waits_for_them_once(
    alices: Client, page: str, feeding: Pipe, monkeypatch: pytest.MonkeyPatch
):
    asked: list[str] = []

    def refuse(host: str, *_: str) -> tuple[int, bytes]:
        asked.append(host)
        raise TimeoutError

    monkeypatch.setattr(table_hosts, "_ask", refuse)
    assert "The row cannot be read now" in text_of(alices, page, key="u-1")
    assert len(asked) == 1


def test_page_of_removed_rows_links_to_the_next_rows(
    alices: Client, page: str, table: LookupTable, on_hosts: TableService
):
    removed: dict[str, tuple[int, str | None]] = {f"a{n:05}": (VERSION, None) for n in range(MOST_READ + 1)}
    on_hosts.fill(table.id, table.tenant_id, table.name, removed)
    content = alices.get(page).content.decode()
    assert "No rows yet" not in content
    assert f'href="{page}?after=a{MOST_READ - 1:05}"' in content


def test_export_has_the_rows_of_the_host(alices: Client, page: str, on_hosts: TableService):
    lines = b"".join(alices.get(page, {"format": "csv", "q": "u-05"})).decode().splitlines()
    assert len(lines) == 11
    assert lines[1] == 'u-050,"{""n"":50}"'


def test_commands_for_direct_access_are_shown(alices: Client, page: str, table: LookupTable, on_hosts: TableService):
    shown = text_of(alices, page)
    assert f"/api/v1/lookup-tables/{table.id}/access/" in shown
    assert f'https://tables.example.com/v1/tables/{table.id}/rows/"$KEY"' in shown
    assert f"https://tables.example.com/v1/tables/{table.id}/changes?from=snapshot" in shown


def test_other_tenant_finds_no_table(browser_of: BrowserOf, charlie: User, page: str, on_hosts: TableService):
    assert browser_of(charlie).get(page, {"key": "u-001"}).status_code == 404


def test_query_count_of_the_list_does_not_grow_with_the_tables(
    alices: Client, tenant: Tenant, feeding: Pipe, django_assert_max_num_queries: DjangoAssertNumQueries
):
    url = reverse("console:tables")
    alices.get(url)
    for number in range(8):
        create_lookup_table(tenant=tenant, name=f"more-{number}")
    with django_assert_max_num_queries(12):
        alices.get(url)
