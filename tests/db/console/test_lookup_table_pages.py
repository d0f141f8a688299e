"""Look-up table pages: create, upload, search, edit, remove; viewers only read, other tenants see nothing."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from mgmt.lookups.row_files import checked_row
from mgmt.models import LookupRow, LookupTable, Pipe, Tenant, User
from mgmt.services import create_lookup_table, publish_revision, put_row
from tests.db.cast import MakeSpec
from tests.db.console.truth import BrowserOf

pytestmark = pytest.mark.django_db


@pytest.fixture
def table(tenant: Tenant) -> LookupTable:
    table = create_lookup_table(tenant=tenant, name="people")
    put_row(table=table, row=checked_row(1, "c-42", {"name": "Ada"}))
    return table


@pytest.fixture
def page(table: LookupTable) -> str:
    return reverse("console:table", args=[table.id])


@pytest.fixture
def alices(browser_of: BrowserOf, alice: User, tenant: Tenant) -> Client:
    return browser_of(alice)


def keys(table: LookupTable) -> set[str]:
    return set(LookupRow.objects.filter(table=table, row__isnull=False).values_list("key", flat=True))


def upload(text: str, name: str = "people.csv", **more: str) -> dict[str, object]:
    return {"key_field": "id", "file": SimpleUploadedFile(name, text.encode()), **more}


def test_table_is_created_and_listed(alices: Client):
    answer = alices.post(reverse("console:tables"), {"name": "goods"})
    made = LookupTable.objects.get(name="goods")
    assert answer["Location"] == reverse("console:table", args=[made.id])
    assert "goods" in alices.get(reverse("console:tables")).content.decode()


@pytest.mark.parametrize(("name", "words"), [("Goods!", "needs 1-40"), ("people", "exists in this tenant")])
def test_invalid_table_name_is_refused_at_its_field(alices: Client, table: LookupTable, name: str, words: str):
    answer = alices.post(reverse("console:tables"), {"name": name})
    assert answer.status_code == 422
    assert words in answer.content.decode()


def test_file_is_stored_completely(alices: Client, table: LookupTable, page: str):
    assert alices.post(f"{page}upload/", upload("id,name\nc-1,Bob\nc-2,Eve\n")).status_code == 302
    assert keys(table) == {"c-42", "c-1", "c-2"}
    alices.post(f"{page}upload/", upload('{"id": "c-3"}\n', "people.jsonl", mode="replace"))
    assert keys(table) == {"c-3"}


def test_invalid_row_is_named_and_nothing_of_the_file_is_stored(alices: Client, table: LookupTable, page: str):
    answer = alices.post(f"{page}upload/", upload("id,name\nc-1,Bob\nc-1,Eve\n"))
    assert answer.status_code == 422
    assert "Row 2 has the same key as row 1. No row of the file was stored." in answer.content.decode()
    assert keys(table) == {"c-42"}


def test_upload_without_a_file_requests_one(alices: Client, page: str):
    assert "Choose a file to upload" in alices.post(f"{page}upload/", {}).content.decode()


def test_upload_requires_the_csrf_token_and_a_signed_in_editor(
    alice: User, client: Client, table: LookupTable, page: str
):
    stranger, strict = Client(), Client(enforce_csrf_checks=True)
    strict.force_login(alice)
    assert stranger.post(f"{page}upload/", upload("id\nc-1\n")).status_code == 302  # redirect to the sign-in page
    assert strict.post(f"{page}upload/", upload("id\nc-1\n")).status_code == 403
    assert keys(table) == {"c-42"}


def test_row_is_stored_changed_removed_and_restored(alices: Client, table: LookupTable, page: str):
    alices.post(page, {"action": "put", "key": "c-7", "row": '{"name": "Bob"}'})
    assert keys(table) == {"c-42", "c-7"}
    assert '"Bob"' in alices.get(page, {"edit": "c-7"}).content.decode().replace("&quot;", '"')
    answer = alices.post(page, {"action": "remove", "key": "c-7"}).content.decode()
    assert keys(table) == {"c-42"}
    assert ">Undo<" in answer
    alices.post(page, {"action": "put", "key": "c-7", "row": '{"name": "Bob"}'})
    assert keys(table) == {"c-42", "c-7"}


@pytest.mark.parametrize("row", ["", "[]", "{", '"text"'])
def test_non_object_row_is_refused_and_input_is_kept(alices: Client, table: LookupTable, page: str, row: str):
    answer = alices.post(page, {"action": "put", "key": "c-8", "row": row})
    assert answer.status_code == 422
    assert "needs a JSON object" in answer.content.decode()
    assert keys(table) == {"c-42"}


def test_rows_are_searched_by_key_prefix_and_paginated(alices: Client, table: LookupTable, page: str):
    alices.post(f"{page}upload/", upload("id\n" + "".join(f"d-{n:03}\n" for n in range(60))))
    first = alices.get(page, {"q": "d-"}).content.decode()
    assert ">c-42<" not in first
    assert "d-049" in first
    assert "d-050" not in first
    assert "d-050" in alices.get(page, {"q": "d-", "after": "d-049"}).content.decode()


def test_table_in_use_by_a_pipe_is_not_removed(
    alices: Client, table: LookupTable, pipe: Pipe, alice: User, a_spec: MakeSpec
):
    spec = a_spec() | {"enrich": [{"table": "people", "key": "body.who", "into": "person"}]}
    publish_revision(pipe=pipe, spec=spec, based_on=1, author=alice)
    url = reverse("console:delete_table", args=[table.id])
    assert "orders@2" in alices.get(url).content.decode()
    assert alices.post(url, {"typed": "people"}).status_code == 409
    table.refresh_from_db()
    assert table.state == "live"


def test_table_is_removed_after_its_name_is_typed(alices: Client, table: LookupTable):
    url = reverse("console:delete_table", args=[table.id])
    assert alices.post(url, {"typed": "peopl"}).status_code == 422
    assert alices.post(url, {"typed": "people"}).status_code == 302
    table.refresh_from_db()
    assert table.state == "removed"


def test_viewer_reads_tables_and_may_change_nothing(browser_of: BrowserOf, viewer: User, table: LookupTable, page: str):
    browser = browser_of(viewer)
    shown = browser.get(page).content.decode()
    assert "c-42" in shown
    assert not any(word in shown for word in ("Upload a file", "Add row", "Remove row"))
    assert browser.post(page, {"action": "remove", "key": "c-42"}).status_code == 403
    assert browser.post(reverse("console:tables"), {"name": "mine"}).status_code == 403
    assert keys(table) == {"c-42"}


@pytest.mark.parametrize("name", ["table", "delete_table"])
def test_other_tenant_finds_no_table(browser_of: BrowserOf, charlie: User, table: LookupTable, name: str):
    url = reverse(f"console:{name}", args=[table.id])
    browser = browser_of(charlie)
    assert (browser.get(url).status_code, browser.post(url, {"typed": "people"}).status_code) == (404, 404)
    assert "people" not in browser.get(reverse("console:tables")).content.decode()
