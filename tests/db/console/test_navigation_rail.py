"""The navigation rail: its entries and counts, and the mark of the current page."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from mgmt.models import Pipe, Tenant, User
from mgmt.services import acknowledge_alert, create_pipe
from tests.db.cast import MakeSpec
from tests.db.console.truth import BrowserOf, Truth, plain
from tests.db.console.undelivered import open_alert

pytestmark = pytest.mark.django_db
CUSTOMER = [
    "Home", "Pipes", "Events", "Alerts", "Schemas", "Look-up tables", "Usage", "API tokens", "Members",
]  # fmt: skip
OWNER = [*CUSTOMER, "Single sign-on", "Audit log"]
STAFF = [
    "Status board", "Control plane", "Cells", "Scaling", "Releases", "Lost messages", "Tenants", "Quotas",
    "Usage by tenant", "Control audit",
]  # fmt: skip


@pytest.fixture
def staff(db: None) -> User:
    return User.objects.create_user("sam", is_staff=True)


def rail_of(browser: Client, path: str, label: str = "Console") -> list[tuple[str, str, str]]:
    """Return text, URL and aria-current of each entry of a navigation."""
    answer = browser.get(path)
    assert answer.status_code == 200
    nav = answer.text.split(f'aria-label="{label}">')[1].split("</nav>")[0]
    links = re.findall(r'<a href="([^"]+)"([^>]*)>(.*?)</a>', nav, re.DOTALL)
    found = [(plain(text), url, "".join(re.findall(r'aria-current="(\w+)"', more))) for url, more, text in links]
    assert found[-1][1] == "/go/"
    return found[:-1]


def names_of(browser: Client, path: str = "/") -> list[str]:
    return [re.sub(r" \d+( open)?$", "", text) for text, _, _ in rail_of(browser, path)]


def test_rail_counts_the_pipes_and_the_open_alerts(
    alices: Client, truth: Truth, tenant: Tenant, a_spec: MakeSpec, alice: User
):
    create_pipe(tenant=tenant, name="refunds", spec=a_spec(), author=alice)
    alert = open_alert(truth.pipe, timezone.now())
    texts = [text for text, _, _ in rail_of(alices, f"/pipes/{truth.pipe.id}/")]
    assert texts == ["Home", "Pipes 2", "Events", "Alerts 1 open", *OWNER[4:]]
    assert 'class="rail-count rail-open">1' in alices.get("/usage/").text
    acknowledge_alert(alert=alert, by=alice, now=timezone.now())
    assert "Alerts 0" in [text for text, _, _ in rail_of(alices, "/")]
    assert "rail-open" not in alices.get("/").text


def test_counts_of_another_tenant_are_its_own(browser_of: BrowserOf, charlie: User, truth: Truth):
    open_alert(truth.pipe, timezone.now())
    texts = [text for text, _, _ in rail_of(browser_of(charlie), "/")]
    assert ("Pipes 0" in texts, "Alerts 0" in texts) == (True, True)


@pytest.mark.parametrize(
    ("path", "current"),
    [
        ("/", ("Home", "page")),
        ("/pipes/", ("Pipes", "page")),
        ("/pipes/new/", ("Pipes", "true")),
        ("/pipes/{pipe}/", ("Pipes", "true")),
        ("/pipes/{pipe}/dead/", ("Pipes", "true")),
        ("/find/", ("Events", "page")),
        ("/alerts/", ("Alerts", "page")),
        ("/alerts/channels/", ("Alerts", "true")),
        ("/schemas/", ("Schemas", "page")),
        ("/schemas/new/", ("Schemas", "true")),
        ("/tables/", ("Look-up tables", "page")),
        ("/usage/", ("Usage", "page")),
        ("/audit/", ("Audit log", "page")),
        ("/help/causes/", None),
    ],
)
def test_rail_marks_the_entry_of_the_page(alices: Client, pipe: Pipe, path: str, current: tuple[str, str] | None):
    marked = [(text, mark) for text, _, mark in rail_of(alices, path.format(pipe=pipe.id)) if mark]
    assert [(re.sub(r" \d+$", "", text), mark) for text, mark in marked] == ([current] if current else [])


def test_page_of_the_pipes_lists_them_without_the_rest_of_home(alices: Client, pipe: Pipe):
    home, page = alices.get("/").text, alices.get("/pipes/").text
    row = f'href="/pipes/{pipe.id}/"'
    for text, is_home in ((home, True), (page, False)):
        assert row in text
        assert ('id="summary"' in text, 'id="undelivered"' in text) == (is_home, is_home)
    assert 'data-live="/pipes/?part=pipes"' in page, "it refreshes itself"
    assert "<title>Pipes" in page
    assert "No pipe matches" in alices.get("/pipes/?q=none").text


def test_menu_for_narrow_windows_has_the_entries_of_the_rail(alices: Client, pipe: Pipe):
    assert rail_of(alices, "/alerts/", "Pages") == rail_of(alices, "/alerts/")
    menu = alices.get("/").text.split("<details")[1].split("</details>")[0]
    assert 'aria-label="Pages"' in menu
    assert "data-keys" not in menu, "the help dialog lists each shortcut once"


def test_staff_entries_are_only_for_staff(browser_of: BrowserOf, viewer: User, alice: User, staff: User):
    assert names_of(browser_of(alice)) == OWNER
    assert names_of(browser_of(viewer)) == CUSTOMER
    assert "Staff" not in browser_of(alice).get("/").text
    browser = browser_of(staff)
    assert names_of(browser) == ["Home", *STAFF], "staff without a tenant"
    for _, url, _ in rail_of(browser, "/"):
        current = [(found, mark) for _, found, mark in rail_of(browser, url) if mark]
        assert current == [(url, "page")]


def test_viewer_opens_every_page_of_the_rail(browser_of: BrowserOf, viewer: User, truth: Truth):
    browser = browser_of(viewer)
    for _, url, _ in rail_of(browser, "/"):
        assert browser.get(url).status_code == 200, url


def test_user_without_a_tenant_has_only_home(browser_of: BrowserOf, django_user_model: type[User]):
    assert names_of(browser_of(django_user_model.objects.create_user("dora"))) == ["Home"]
