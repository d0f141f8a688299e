"""The command palette lists the console's pages and the tenant's pipes by name, for those who may open them."""

import re

import pytest
from django.test import Client
from pytest_django.fixtures import DjangoAssertNumQueries

from mgmt.models import Pipe, Tenant, User
from mgmt.services import create_pipe
from tests.db.cast import MakeSpec
from tests.db.console.truth import BrowserOf

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
PAGES = [
    "Home", "Pipes", "Events", "Alerts", "Schemas", "Look-up tables", "Usage", "API tokens", "Members",
    "Single sign-on", "Audit log",
]  # fmt: skip


def targets_of(browser: Client, q: str = "") -> list[tuple[str, str]]:
    """Return name and URL of each target of the fragment."""
    answer = browser.get("/go/", {"part": "targets", "q": q}, headers=HTMX)
    assert answer.status_code == 200
    assert "<html" not in answer.text
    links = re.findall(r'<li><a href="([^"]+)">([^<]+) <span', answer.text)
    return [(name, url) for url, name in links]


def test_pages_and_pipes_are_found_by_a_part_of_their_name(alices: Client, pipe: Pipe):
    assert [name for name, _ in targets_of(alices)] == [*PAGES, "orders"]
    assert targets_of(alices, "ORD") == [("orders", f"/pipes/{pipe.id}/")]
    assert targets_of(alices, "aler") == [("Alerts", "/alerts/")]
    assert targets_of(alices, "no such") == []
    assert targets_of(alices, "ord\x00ers") == [("orders", f"/pipes/{pipe.id}/")]


def test_every_target_can_be_opened(browser_of: BrowserOf, viewer: User, pipe: Pipe):
    browser = browser_of(viewer)
    for name, url in targets_of(browser):
        assert browser.get(url).status_code == 200, name


def test_other_tenants_pipes_and_staff_pages_are_not_listed(browser_of: BrowserOf, charlie: User, pipe: Pipe):
    assert [name for name, _ in targets_of(browser_of(charlie))] == PAGES
    assert targets_of(browser_of(charlie), "orders") == []
    staff = User.objects.create_user("sam", is_staff=True)
    assert ("Cells", "/staff/cells/") in targets_of(browser_of(staff))
    assert ("Cells", "/staff/cells/") not in targets_of(browser_of(charlie))


def test_at_most_20_targets_are_listed(
    alices: Client, pipe: Pipe, tenant: Tenant, a_spec: MakeSpec, alice: User,
    django_assert_num_queries: DjangoAssertNumQueries,
):  # fmt: skip
    with django_assert_num_queries(6):
        targets_of(alices)
    for number in range(25):
        create_pipe(tenant=tenant, name=f"pipe <{number:02}>", spec=a_spec(), author=alice)
    with django_assert_num_queries(6):
        assert len(targets_of(alices)) == 20
    assert len(targets_of(alices, "pipe <")) == 20
    assert "Showing the first 20" in alices.get("/go/", {"q": "pipe <"}).text


def test_page_works_without_a_script(alices: Client, pipe: Pipe):
    page = alices.get("/go/", {"q": "ord"}).text
    assert "<h1>Go to a page or pipe</h1>" in page
    assert f'<li><a href="/pipes/{pipe.id}/">orders <span' in page
    assert '<a href="/go/" data-palette-open>' in page


def test_palette_is_signed_in_only(client: Client):
    assert client.get("/go/").headers["Location"] == "/sign-in/?next=/go/"


def test_help_and_pages_have_the_palette(alices: Client, pipe: Pipe):
    page = alices.get(f"/pipes/{pipe.id}/").text
    assert '<dialog id="palette" aria-label="Go to a page or pipe">' in page
    assert "<kbd>Ctrl</kbd><kbd>K</kbd>" in page
