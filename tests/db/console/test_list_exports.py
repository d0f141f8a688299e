"""Every list has a file export of its rows, and the list of pipes is ordered and paginated by its columns."""

import csv
import io
import json
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from mgmt.lookups.row_files import checked_row
from mgmt.models import Destination, Pipe, Tenant, User
from mgmt.pipes.pages import home
from mgmt.services import create_lookup_table, create_pipe, pause_pipe, put_row
from tests.db.cast import MakeSpec
from tests.db.console.truth import Truth

pytestmark = pytest.mark.django_db


def lines_of(browser: Client, url: str, **query: str) -> list[dict[str, Any]]:
    answer = browser.get(url, {**query, "format": "jsonl"})
    assert answer["Content-Disposition"].endswith('.jsonl"')
    return [json.loads(line) for line in b"".join(answer).splitlines()]


def names_on(page: str) -> list[str]:
    rows = page.partition('id="pipes"')[2].partition("</table>")[0]
    return re.findall(r'<th scope="row"><a href="[^"]*">([^<]*)</a>', rows)


@pytest.fixture
def three(tenant: Tenant, alice: User, a_spec: MakeSpec, truth: Truth) -> list[Pipe]:
    """Pipe orders with traffic, pipes alpha and zulu without."""
    return [create_pipe(tenant=tenant, name=name, spec=a_spec(), author=alice) for name in ("zulu", "alpha")]


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("", ["alpha", "orders", "zulu"]),
        ("-name", ["zulu", "orders", "alpha"]),
        ("-delivered", ["orders", "alpha", "zulu"]),
        ("delivered", ["alpha", "zulu", "orders"]),
        ("lag", ["orders", "alpha", "zulu"]),
        ("-needs", ["orders", "alpha", "zulu"]),
        ("nothing", ["alpha", "orders", "zulu"]),
    ],
)
def test_pipes_are_ordered_by_a_column(alices: Client, three: list[Pipe], sort: str, names: list[str]):
    assert names_on(alices.get("/", {"sort": sort}).content.decode()) == names


def test_heading_shows_the_order_and_links_to_the_opposite_order(alices: Client, three: list[Pipe]):
    page = alices.get("/", {"sort": "-lag", "q": "a"}).content.decode()
    assert '<th scope="col" class="n" aria-sort="descending"><a href="?q=a&amp;sort=lag">Lag p95 (1 h)</a></th>' in page
    assert '<a href="?q=a&amp;sort=-in">In / s</a>' in page


def test_pipes_are_paginated_in_their_order(alices: Client, three: list[Pipe], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(home, "MOST_PIPES", 2)
    page = alices.get("/", {"sort": "-name"}).content.decode()
    following = re.search(r'href="([^"]*)">Next page', page)
    assert names_on(page) == ["zulu", "orders"]
    assert following
    assert names_on(alices.get(following[1].replace("&amp;", "&")).content.decode()) == ["alpha"]


def test_pipe_export_contains_all_matching_pipes_in_their_order(
    alices: Client, three: list[Pipe], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(home, "MOST_PIPES", 1)
    found = lines_of(alices, "/", sort="-name", q="l")
    assert [line["name"] for line in found] == ["zulu", "alpha"]
    (orders,) = lines_of(alices, "/", q="orders")
    assert (orders["state"], orders["revision"], orders["delivered"], orders["needs_you"]) == ("live", 1, 7, 1)


def test_revision_export_contains_the_specs(alices: Client, pipe: Pipe):
    (found,) = lines_of(alices, reverse("console:revisions", args=[pipe.id]))
    assert (found["number"], found["author"]) == (1, "alice")
    assert found["spec"]["destinations"]["crm"]["url"] == "https://crm.example.com/in"


def test_held_list_has_a_file_export(alices: Client, truth: Truth):
    pause_pipe(pipe=truth.pipe)
    Destination.objects.filter(pipe=truth.pipe).update(state="paused")
    (found,) = lines_of(alices, reverse("console:held", args=[truth.pipe.id]))
    assert (found["destination"], found["state"], found["messages"]) == ("crm", "paused", 0)


def test_lookup_tables_and_their_rows_have_file_exports(alices: Client, tenant: Tenant):
    table = create_lookup_table(tenant=tenant, name="customers")
    for key in ("c-2", "c-1", "d-1"):
        put_row(table=table, row=checked_row(1, key, {"name": key.upper()}))
    (found,) = lines_of(alices, reverse("console:tables"))
    assert (found["name"], found["row_count"]) == ("customers", 3)
    rows = lines_of(alices, reverse("console:table", args=[table.id]), q="c-")
    assert [(row["key"], json.loads(row["row"])) for row in rows] == [
        ("c-1", {"name": "C-1"}),
        ("c-2", {"name": "C-2"}),
    ]


def test_other_tenant_gets_404_for_a_table_export(browser_of: Any, charlie: User, tenant: Tenant):
    table = create_lookup_table(tenant=tenant, name="customers")
    assert browser_of(charlie).get(reverse("console:table", args=[table.id]), {"format": "csv"}).status_code == 404


def test_csv_export_has_the_same_columns(alices: Client, three: list[Pipe]):
    answer = alices.get("/", {"format": "csv"})
    rows = list(csv.DictReader(io.StringIO(b"".join(answer).decode())))
    assert [row["name"] for row in rows] == ["alpha", "orders", "zulu"]
    assert set(rows[0]) == set(home._FILE_COLUMNS)
