"""The query count of a page does not grow with its rows. The numbers are baselines: lower them if you can."""

import pytest
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries

from mgmt.models import Pipe, Tenant, User
from mgmt.services import create_pipe
from tests.db.cast import MakeSpec
from tests.db.console.truth import BrowserOf, Truth, go_live
from tests.db.console.undelivered import open_alert, store_dead, store_held

pytestmark = pytest.mark.django_db
HOME, OVERVIEW, ATTEMPTS, SETTINGS, DESTINATION, MESSAGE, DELIVERY = 33, 39, 13, 16, 40, 19, 16
DEAD, HELD, ALERTS, PATTERNS = 17, 18, 9, 14


def test_home_has_a_constant_query_count_for_one_pipe_and_five(
    browser_of: BrowserOf,
    alice: User,
    truth: Truth,
    tenant: Tenant,
    a_spec: MakeSpec,
    bucket: int,
    django_assert_num_queries: DjangoAssertNumQueries,
):
    browser = browser_of(alice)
    browser.get("/")
    with django_assert_num_queries(HOME):
        browser.get("/")
    for number in range(4):
        pipe = create_pipe(tenant=tenant, name=f"more {number}", spec=a_spec(), author=alice)
        go_live(pipe)
        Truth(pipe).moved(bucket, [100 + number])
    with django_assert_num_queries(HOME):
        browser.get("/")


@pytest.mark.parametrize(
    ("path", "queries"),
    [
        ("", OVERVIEW),
        ("attempts/", ATTEMPTS),
        ("settings/", SETTINGS),
        ("destinations/crm/", DESTINATION),
        ("destinations/crm/delivery/", DELIVERY),
        ("messages/1-0-7/", MESSAGE),
        ("patterns/", PATTERNS),
    ],
    ids=["overview", "attempts", "settings", "destination", "delivery", "message", "patterns"],
)
def test_pipe_tab_has_its_baseline_query_count(
    browser_of: BrowserOf,
    alice: User,
    truth: Truth,
    django_assert_num_queries: DjangoAssertNumQueries,
    path: str,
    queries: int,
):
    browser = browser_of(alice)
    with django_assert_num_queries(queries):
        browser.get(f"/pipes/{truth.pipe.id}/{path}")


@pytest.mark.parametrize(("name", "queries"), [("dead", DEAD), ("held", HELD), ("alerts", ALERTS)])
def test_list_has_a_constant_query_count_for_few_rows_and_many(
    browser_of: BrowserOf,
    alice: User,
    pipe: Pipe,
    django_assert_num_queries: DjangoAssertNumQueries,
    name: str,
    queries: int,
):
    go_live(pipe)
    now = timezone.now()
    store_dead(pipe, range(2), now)
    store_held(pipe, range(2), now)
    open_alert(pipe, now)
    browser = browser_of(alice)
    url = reverse("console:alerts") if name == "alerts" else reverse(f"console:{name}", args=[pipe.id])
    with django_assert_num_queries(queries):
        browser.get(url)
    store_dead(pipe, range(2, 40), now, cause="expired")
    store_held(pipe, range(2, 40), now)
    with django_assert_num_queries(queries):
        browser.get(url)
