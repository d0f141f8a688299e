"""The cells' pages and the audit: what each cell is, who changes it, what was done; for staff, at a fixed cost."""

from collections.abc import Callable
from datetime import timedelta
from html import escape

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries

from controlplane.leases import take
from mgmt.models import Cell, ControlAction, Heartbeat, Pipe, Relocation, Tenant, User, Verdict
from mgmt.services import pause_controller
from mgmt.services.control import note
from tests.db.console.truth import BrowserOf, go_live

pytestmark = pytest.mark.django_db
CELLS, CELL, AUDIT = 10, 16, 7
MakeCell = Callable[[str], Cell]


@pytest.fixture
def root() -> User:
    return User.objects.create_superuser("admin")


@pytest.fixture
def admin(browser_of: BrowserOf, root: User) -> Client:
    return browser_of(root)


@pytest.fixture
def make_cell() -> MakeCell:
    def make(name: str) -> Cell:
        now = timezone.now()
        cell = Cell.objects.create(id=name, lanes={"process": 2})
        row = {"kind": "process", "epoch": 1, "incarnation": "i", "table_offset": 0, "state": "running"}
        body = {"unsettled": 3, "cpu_s": 1.5, "rss_bytes": 70_000_000, "detail": "its topic refuses"}
        Heartbeat.objects.create(cell=name, writer="process-0", at=now, body=body, **row)
        reasons = ["process-1 has not been heard of"]
        Verdict.objects.create(cell=cell, state="unstable", reasons=reasons, since=now, at=now)
        note("deploy", "roll-out", outcome="refused", at=now, cell=name, reason=f"cell {name} is unstable")
        return cell

    return make


def test_a_cells_page_says_how_it_is_what_runs_and_what_was_done(admin: Client, make_cell: MakeCell, pipe: Pipe):
    pipe.cell = make_cell("c1")
    pipe.save()
    page = admin.get("/staff/cells/c1/").content.decode()
    for words in (
        "unstable",
        "process-1 has not been heard of",
        "1 of 2",
        "its topic refuses",
        "orders",
        "roll-out",
        "refused",
    ):
        assert words in page, words


def test_a_pipe_is_moved_from_the_page_of_its_cell(admin: Client, pipe: Pipe):
    go_live(pipe)
    Cell.objects.create(id="c2")
    asked = {"pipe": pipe.id, "to": "c2", "reason": ""}
    refused = admin.post("/staff/cells/c1/move/", asked)
    assert refused.status_code == 422
    assert "others will ask why" in refused.content.decode()
    said = admin.post("/staff/cells/c1/move/", asked | {"reason": "c1 is full"}, follow=True).content.decode()
    assert "orders is to be moved to c2." in said
    assert "c1 is full" in said
    assert "already" in admin.post("/staff/cells/c1/move/", asked | {"reason": "again"}).content.decode()
    row = Relocation.objects.get()
    assert "It stays where it is." in admin.post(f"/staff/relocations/{row.id}/give-up/", follow=True).content.decode()
    assert "given up by admin" in admin.get("/staff/cells/c2/").content.decode()
    assert admin.post("/staff/cells/c2/move/", asked).status_code == 404, "it is not on that one"


def test_a_cell_is_added_and_kept_for_a_tenant_and_its_page_says_so(admin: Client, tenant: Tenant):
    refused = admin.post("/staff/cells/", {"name": "Not this"})
    assert refused.status_code == 422
    assert "name: needs 1 to 16 lower-case letters" in refused.content.decode()
    assert 'value="Not this"' in refused.content.decode()
    assert "Cell own is being made." in admin.post("/staff/cells/", {"name": "own"}, follow=True).content.decode()
    without = admin.post("/staff/cells/own/keep/", {"tenant": "", "sleep": "15"})
    assert without.status_code == 422
    assert "only a cell that is kept for one tenant may sleep" in without.content.decode()
    assert (
        "needs a whole number of minutes"
        in admin.post("/staff/cells/own/keep/", {"tenant": tenant.id, "sleep": "1.5"}).content.decode()
    )
    said = admin.post("/staff/cells/own/keep/", {"tenant": tenant.id, "sleep": "15"}, follow=True).content.decode()
    assert f"kept for {escape(tenant.name)}, sleeps after 15 min without anything to do" in said
    assert 'value="15"' in said
    Cell.objects.filter(id="own").update(lanes={"process": 0, "transmit": 0})
    assert "It sleeps: the next message wakes it" in admin.get("/staff/cells/").content.decode()


def test_the_list_names_who_changes_a_cell_and_who_may_not(admin: Client, root: User):
    Cell.objects.create(id="c1")
    now = timezone.now()
    take("c1", "scale", "2 lanes", now)
    pause_controller(controller="deploy", cell=None, reason="frozen", until=now + timedelta(hours=1), by=root, now=now)
    page = admin.get("/staff/cells/").content.decode()
    for words in ("not heard of yet", "scaling: 2 lanes", "deploying is paused everywhere: frozen"):
        assert words in page, words


def test_a_cell_that_is_not_there_is_not_found(admin: Client):
    assert admin.get("/staff/cells/none/").status_code == 404
    assert admin.get("/staff/cells/%00/").status_code == 404


def test_the_audit_is_filtered_paged_and_a_file(admin: Client, make_cell: MakeCell):
    make_cell("c1")
    for number in range(150):
        note("provision", "go-live", outcome="done", at=timezone.now(), reason=f"number {number}")
    first = admin.get("/staff/audit/", {"controller": "provision"}).content.decode()
    assert "number 149" in first
    assert "roll-out" not in first
    oldest_shown = ControlAction.objects.get(reason="number 50").id
    assert f"before={oldest_shown}" in first
    older = admin.get(f"/staff/audit/?controller=provision&before={oldest_shown}").content.decode()
    assert "number 49" in older
    assert "before=" not in older
    answer = admin.get("/staff/audit/", {"outcome": "refused", "format": "jsonl"})
    lines = b"".join(answer).decode().splitlines()
    assert len(lines) == 1
    assert "cell c1 is unstable" in lines[0]


@pytest.mark.parametrize("query", ["before=x", "before=" + "9" * 40, "controller=%00", "cell=nowhere", "format=x"])
def test_what_no_filter_can_be_breaks_nothing(admin: Client, query: str):
    assert admin.get(f"/staff/audit/?{query}").status_code == 200


@pytest.mark.parametrize(("path", "queries"), [("cells/", CELLS), ("cells/c1/", CELL), ("audit/", AUDIT)])
def test_a_page_costs_the_same_for_many_cells(
    admin: Client,
    make_cell: MakeCell,
    pipe: Pipe,
    django_assert_num_queries: DjangoAssertNumQueries,
    path: str,
    queries: int,
):
    pipe.cell = make_cell("c1")
    pipe.save()
    admin.get("/staff/")
    with django_assert_num_queries(queries):
        admin.get(f"/staff/{path}")
    for number in range(2, 6):
        make_cell(f"c{number}")
    with django_assert_num_queries(queries):
        admin.get(f"/staff/{path}")
