"""Cell pages and audit for staff: state, controllers and changes of each cell, at a constant query count."""

from collections.abc import Callable
from datetime import timedelta
from html import escape

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries

from controlplane.leases import acquire
from mgmt.cells.services.control import note
from mgmt.models import Cell, CellVerdict, ControlAction, Heartbeat, Pipe, PipeMigration, Tenant, User
from mgmt.services import pause_controller
from tests.db.console.truth import BrowserOf, go_live

pytestmark = pytest.mark.django_db
CELLS, CELL, AUDIT = 11, 17, 7
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
        reasons = ["process-1 has sent no heartbeat"]
        CellVerdict.objects.create(cell=cell, state="unstable", reasons=reasons, since=now, at=now)
        refused = ControlAction.Outcome.REFUSED
        why = f"cell {name} is unstable"
        note("deploy", "roll-out", outcome=refused, at=now, cell=name, refusal="cell-unstable", reason=why)
        return cell

    return make


def test_cell_page_shows_verdict_lanes_pipes_and_audit(admin: Client, make_cell: MakeCell, pipe: Pipe):
    pipe.cell = make_cell("c1")
    pipe.save()
    page = admin.get("/staff/cells/c1/").content.decode()
    for words in (
        "unstable",
        "process-1 has sent no heartbeat",
        "1 of 2",
        "its topic refuses",
        "orders",
        "roll-out",
        "refused",
    ):
        assert words in page, words


def test_pipe_is_migrated_from_the_page_of_its_cell(admin: Client, pipe: Pipe):
    go_live(pipe)
    Cell.objects.create(id="c2")
    asked = {"pipe": pipe.id, "to": "c2", "reason": ""}
    refused = admin.post("/staff/cells/c1/move/", asked)
    assert refused.status_code == 422
    assert "the control audit shows it" in refused.content.decode()
    said = admin.post("/staff/cells/c1/move/", asked | {"reason": "c1 is full"}, follow=True).content.decode()
    assert "Migration of orders to c2 requested." in said
    assert "c1 is full" in said
    assert "already" in admin.post("/staff/cells/c1/move/", asked | {"reason": "again"}).content.decode()
    row = PipeMigration.objects.get()
    assert "Migration cancelled." in admin.post(f"/staff/relocations/{row.id}/give-up/", follow=True).content.decode()
    assert "cancelled by admin" in admin.get("/staff/cells/c2/").content.decode()
    assert admin.post("/staff/cells/c2/move/", asked).status_code == 404, "the pipe is not on this cell"


def test_cell_is_added_and_dedicated_to_a_tenant_and_its_page_shows_it(admin: Client, tenant: Tenant):
    refused = admin.post("/staff/cells/", {"name": "Not this"})
    assert refused.status_code == 422
    assert "name: needs 1 to 16 lower-case letters" in refused.content.decode()
    assert 'value="Not this"' in refused.content.decode()
    assert "Cell own is being created." in admin.post("/staff/cells/", {"name": "own"}, follow=True).content.decode()
    assert "<dt>Partitions</dt><dd>default</dd>" in admin.get("/staff/cells/own/").content.decode()
    without = admin.post("/staff/cells/own/keep/", {"tenant": "", "sleep": "15"})
    assert without.status_code == 422
    assert "only a cell that is dedicated to one tenant may sleep" in without.content.decode()
    assert (
        "needs a whole number of minutes"
        in admin.post("/staff/cells/own/keep/", {"tenant": tenant.id, "sleep": "1.5"}).content.decode()
    )
    said = admin.post("/staff/cells/own/keep/", {"tenant": tenant.id, "sleep": "15"}, follow=True).content.decode()
    assert f"dedicated to {escape(tenant.name)}, sleeps after 15 idle minutes" in said
    assert 'value="15"' in said
    Cell.objects.filter(id="own").update(lanes={"process": 0, "transmit": 0})
    assert "Sleeping: the next message wakes it" in admin.get("/staff/cells/").content.decode()


@pytest.mark.parametrize(
    ("partitions", "refusal"),
    [("12", ""), ("1000", ""), ("0", "needs 1 to 1000"), ("1001", "needs 1 to 1000"), ("a", "needs a whole number")],
)
def test_cell_is_added_with_its_own_partitions(admin: Client, partitions: str, refusal: str):
    response = admin.post("/staff/cells/", {"name": "big", "partitions": partitions}, follow=True)
    page = response.content.decode()
    if refusal:
        assert response.status_code == 422
        assert f"partitions: {refusal}" in page
        assert f'value="{partitions}"' in page
        assert not Cell.objects.filter(id="big").exists()
    else:
        assert f"<dt>Partitions</dt><dd>{partitions}</dd>" in page


def test_cell_list_names_lease_holders_and_paused_controllers(admin: Client, root: User):
    Cell.objects.create(id="c1")
    now = timezone.now()
    acquire("c1", "scale", "2 lanes", now)
    pause_controller(controller="deploy", cell=None, reason="frozen", until=now + timedelta(hours=1), by=root, now=now)
    page = admin.get("/staff/cells/").content.decode()
    for words in ("no verdict yet", "scaling: 2 lanes", "deploying is paused on all cells: frozen"):
        assert words in page, words


def test_unknown_cell_is_not_found(admin: Client):
    assert admin.get("/staff/cells/none/").status_code == 404
    assert admin.get("/staff/cells/%00/").status_code == 404


def test_audit_is_filtered_paginated_and_exported(admin: Client, make_cell: MakeCell):
    make_cell("c1")
    for number in range(150):
        note("provision", "go-live", outcome=ControlAction.Outcome.DONE, at=timezone.now(), reason=f"number {number}")
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
def test_invalid_audit_filter_is_answered_with_200(admin: Client, query: str):
    assert admin.get(f"/staff/audit/?{query}").status_code == 200


@pytest.mark.parametrize(("path", "queries"), [("cells/", CELLS), ("cells/c1/", CELL), ("audit/", AUDIT)])
def test_staff_pages_have_a_constant_query_count_for_many_cells(
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
