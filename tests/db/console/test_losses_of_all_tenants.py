"""Lost messages of all tenants for staff: the same numbers as on each tenant's own pages."""

from datetime import datetime

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries

from controlplane.observer.seal import seal_row
from mgmt.ledger.queries.all_losses import all_losses
from mgmt.ledger.queries.bucket_range import bucket_at, span_until, start_of
from mgmt.ledger.queries.ledger import accounts
from mgmt.ledger.queries.minutes import minute_line
from mgmt.models import LateCount, Membership, Pipe, User
from mgmt.services import create_pipe, create_tenant
from tests.db.cast import MakeSpec
from tests.db.console.truth import BrowserOf, Truth, exported, go_live, plain

pytestmark = pytest.mark.django_db
LOSSES = 7


@pytest.fixture
def root() -> User:
    return User.objects.create_superuser("admin")


@pytest.fixture
def admin(browser_of: BrowserOf, root: User) -> Client:
    return browser_of(root)


@pytest.fixture
def last(now: datetime) -> int:
    """Newest minute that may be sealed."""
    return bucket_at(now) - 5


def lose(pipe: Pipe, bucket: int, first: int, lost: int) -> Truth:
    """Store and seal a minute of ten messages, of which the last `lost` never reached the transmit lane."""
    truth, offsets = Truth(pipe), list(range(first, first + 10))
    truth.moved(bucket, offsets)
    truth.fact(bucket, "transmit:crm", "delivered", offsets[: 10 - lost])
    truth.passed(1_000_000)
    seal_row(pipe.id, bucket, accounts(pipe.id, [bucket])[bucket], timezone.now()).save()
    return truth


@pytest.fixture
def two(pipe: Pipe, charlie: User, a_spec: MakeSpec, last: int) -> tuple[Pipe, Pipe]:
    """Pipes of two tenants: Alice's lost three messages, and a minute earlier Charlie's one."""
    tenant = create_tenant(name="Other", owner=charlie)
    other = create_pipe(tenant=tenant, name="refunds", spec=a_spec(), author=charlie)
    for row, bucket, lost in ((pipe, last, 3), (other, last - 1, 1)):
        go_live(row)
        row.refresh_from_db()
        lose(row, bucket, 100 + 100 * (last - bucket), lost)
    return pipe, other


def test_losses_of_all_tenants_are_listed_with_node_share_and_count(admin: Client, two: tuple[Pipe, Pipe]):
    page = admin.get("/staff/losses/").text
    assert "4 messages in 2 minutes of 2 tenants" in plain(page)
    table = plain(page.split("<tbody>")[1].split("</tbody>")[0])
    assert "Alice's orders c1 3 30.0% transmit:crm 3 30.0%" in table
    assert "Other refunds c1 1 10.0% transmit:crm 1 10.0%" in table
    assert table.index("orders") < table.index("refunds"), "newest first"


def test_listed_loss_is_that_of_the_minute_on_the_tenants_pages(two: tuple[Pipe, Pipe], now: datetime):
    lines = all_losses(span_until("24h", now)).lines
    assert len(lines) == 2
    for line in lines:
        assert line.loss == minute_line(line.pipe.id, line.bucket).loss


def test_message_that_was_found_later_is_not_lost_any_more(admin: Client, two: tuple[Pipe, Pipe], last: int):
    other = two[1]
    Truth(other).fact(last - 1, "transmit:crm", "delivered", [209], partition=1)
    LateCount.objects.create(pipe_id=other.id, bucket=last - 1, node="transmit:crm", fact="delivered", count=1)
    page = plain(admin.get("/staff/losses/").text)
    assert "3 messages in 1 minute of 1 tenant" in page
    assert "refunds" not in page
    found = admin.get("/staff/board/").text
    assert "Lost in the last 24 h 3" in plain(found)


def test_member_is_led_to_the_minute_and_other_staff_to_the_admin(admin: Client, root: User, two: tuple[Pipe, Pipe]):
    pipe, other = two
    Membership.objects.create(tenant=pipe.tenant, user=root, role="viewer")
    lines = all_losses(span_until("24h", timezone.now())).lines
    page = admin.get("/staff/losses/").text
    minute = f"/pipes/{pipe.id}/minutes/{lines[0].bucket}/"
    for link in (minute, f"/admin/mgmt/pipe/{other.id}/change/"):
        assert f'href="{link}"' in page
        assert admin.get(link).status_code == 200


def test_range_and_cursor_select_the_minutes_and_files_have_the_same_rows(
    admin: Client, two: tuple[Pipe, Pipe], last: int
):
    pipe, other = two
    first = all_losses(span_until("24h", timezone.now()), most=1)
    assert first.next_before == f"{last}-{pipe.id}"
    rest = plain(admin.get("/staff/losses/", {"before": first.next_before}).text)
    assert "1 message in 1 minute" in rest
    lose(other, last - 300, 500, 2)
    assert [admin.get("/staff/losses/", {"range": name}).text.count("refunds</td>") for name in ("1h", "6h")] == [1, 2]
    rows = exported(admin, "/staff/losses/", range="6h")
    assert [(row["pipe"], row["lost"], row["node"], row["node_loss_percent"]) for row in rows] == [
        ("orders", 3, "transmit:crm", 30.0),
        ("refunds", 1, "transmit:crm", 10.0),
        ("refunds", 2, "transmit:crm", 20.0),
    ]
    assert rows[0]["minute"] == start_of(last).isoformat()


@pytest.mark.parametrize("query", ["before=x", "before=1-%00", "range=9y", "before=99999999999-p", "format=x"])
def test_invalid_parameters_are_ignored(admin: Client, query: str):
    assert admin.get(f"/staff/losses/?{query}").status_code == 200


def test_no_loss_is_said(admin: Client):
    assert "No message was lost" in admin.get("/staff/losses/").text


def test_query_count_is_the_same_for_two_lossy_minutes_and_for_many(
    admin: Client, two: tuple[Pipe, Pipe], last: int, django_assert_num_queries: DjangoAssertNumQueries
):
    admin.get("/staff/losses/")
    with django_assert_num_queries(LOSSES):
        admin.get("/staff/losses/")
    for number in range(2, 12):
        lose(two[0], last - number, 1_000 * number, 1)
    with django_assert_num_queries(LOSSES):
        assert "14 messages in 12 minutes" in plain(admin.get("/staff/losses/").text)
