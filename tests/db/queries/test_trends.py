"""Trends of pipes have the numbers of their minutes, in whatever state these are."""

from collections.abc import Sequence

import pytest
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries

from controlplane.observer.rollups import keep_rollups
from controlplane.observer.seal import seal_row
from dataplane.ledger.bins import Bin
from mgmt.ledger.queries.bucket_range import BucketRange, start_of
from mgmt.ledger.queries.ledger import accounts
from mgmt.ledger.queries.minute_sums import TrendSums
from mgmt.ledger.queries.minutes import MinuteLoss, minute_lines
from mgmt.ledger.queries.timing import timing
from mgmt.ledger.queries.trends import trends_of
from mgmt.models import LateCount, Pipe, PipeRollup, Tenant, User
from mgmt.services import create_pipe
from tests.db.cast import MakeSpec
from tests.db.console.truth import Truth, go_live

pytestmark = pytest.mark.django_db
LAST = 29_833_333
HOUR = BucketRange("1h", LAST - 59, LAST)
NOT_DELIVERED = (Bin.DEAD, Bin.HELD, Bin.RETRYING)


@pytest.fixture
def truth(pipe: Pipe) -> Truth:
    go_live(pipe)
    return Truth(pipe)


def seal(truth: Truth, bucket: int) -> None:
    """Seal the bucket as the Observer does."""
    account = accounts(truth.pipe.id, [bucket])[bucket]
    seal_row(truth.pipe.id, bucket, account, timezone.now()).save(force_insert=True)


def sums_of(lines: Sequence[MinuteLoss]) -> TrendSums:
    """Return the sums of minutes as their own page has them."""
    lost = sum(line.bins.get(Bin.LOST, 0) for line in lines if line.sealed_at)
    undelivered = sum(line.bins.get(name, 0) for line in lines for name in NOT_DELIVERED)
    delivered = sum(line.bins.get(Bin.DELIVERED, 0) for line in lines)
    return TrendSums(sum(line.accepted for line in lines), delivered, undelivered + lost, lost)


def test_sums_are_those_of_the_minutes_also_after_late_facts_retries_and_trimmed_facts(truth: Truth):
    truth.passed(1_000)
    for number, bucket in enumerate((LAST - 58, LAST - 40, LAST - 39, LAST - 1)):
        first = 100 * number
        truth.moved(bucket, list(range(first, first + 10)))
        truth.fact(bucket, "transmit:crm", "delivered", list(range(first, first + 6)))
        truth.fact(bucket, "transmit:crm", "dead", [first + 6], "rejected")
    truth.fact(LAST - 40, "transmit:crm", "parked", [107, 108], "1")
    for bucket in (LAST - 58, LAST - 40, LAST - 39):
        seal(truth, bucket)
    truth.fact(LAST - 40, "transmit:crm", "delivered", [107], partition=1)  # a retry, after the seal
    truth.fact(LAST - 39, "transmit:crm", "delivered", [207], partition=1)
    LateCount.objects.create(pipe_id=truth.pipe.id, bucket=LAST - 39, node="transmit:crm", fact="delivered", count=1)
    truth.seal(LAST - 20, accepted=50, lost=4)  # its facts are past their retention
    LateCount.objects.create(pipe_id=truth.pipe.id, bucket=LAST - 20, node="transmit:crm", fact="delivered", count=1)

    lines = minute_lines([truth.pipe.id], HOUR)[truth.pipe.id]
    trend = trends_of([truth.pipe.id], HOUR).by_pipe[truth.pipe.id]
    assert trend.whole == sums_of(lines)
    assert trend.whole.delivered == 6 + 7 + 7 + 6 + 46
    for part, minutes in enumerate(HOUR.parts()):
        assert trend.sums[part] == sums_of([line for line in lines if line.bucket in minutes]), part


def test_minutes_outside_the_range_and_other_pipes_do_not_count(
    truth: Truth, tenant: Tenant, a_spec: MakeSpec, alice: User
):
    other = create_pipe(tenant=tenant, name="another", spec=a_spec(), author=alice)
    Truth(other).seal(LAST - 2, accepted=7)
    truth.seal(HOUR.first - 1, accepted=100)
    truth.seal(HOUR.last + 1, accepted=100)
    truth.seal(HOUR.first, accepted=3)
    found = trends_of([truth.pipe.id, other.id], HOUR)
    assert [sums.accepted for sums in found.by_pipe[truth.pipe.id].sums] == [3] + [0] * 12
    assert [sums.accepted for sums in found.by_pipe[other.id].sums] == [0] * 12 + [7]
    assert [sums.accepted for sums in found.total.sums] == [3] + [0] * 11 + [7]


def test_rates_shares_and_lags_of_each_part(truth: Truth):
    truth.seal(LAST - 7, accepted=600, lost=60)
    truth.lag(LAST - 7, "transmit:crm", "out", [10_000] * 20)
    truth.lag(LAST, "transmit:crm", "out", [90_000] * 2)
    truth.lag(LAST, "normalize", "out", [900_000] * 99)
    trend = trends_of([truth.pipe.id], HOUR).by_pipe[truth.pipe.id]
    assert trend.rates == [0.0] * 11 + [2.0, 0.0]
    assert trend.shares == [None] * 11 + [0.9, None]
    assert trend.lag_p95s_us[:11] == [None] * 11
    assert trend.lag_p95s_us[11:] == pytest.approx([10_000, 90_000], rel=0.01)
    assert trend.lag_p95_us == timing(pipe_id=truth.pipe.id, span=HOUR).end_to_end_us


def test_query_count_does_not_depend_on_the_number_of_pipes(
    truth: Truth, tenant: Tenant, a_spec: MakeSpec, alice: User, django_assert_num_queries: DjangoAssertNumQueries
):
    truth.moved(LAST, [1])
    with django_assert_num_queries(5):
        trends_of([truth.pipe.id], HOUR)
    others = [create_pipe(tenant=tenant, name=f"other {n}", spec=a_spec(), author=alice).id for n in range(4)]
    with django_assert_num_queries(5):
        trends_of([truth.pipe.id, *others], HOUR)
    truth.fact(LAST, "transmit:crm", "dead", [1], "rejected")  # its bin depends on offsets
    with django_assert_num_queries(10):
        trends_of([truth.pipe.id, *others], HOUR)


def test_pipes_that_only_count_in_the_total_leave_the_others_and_the_total_as_they_are(
    truth: Truth, tenant: Tenant, a_spec: MakeSpec, alice: User
):
    others = [create_pipe(tenant=tenant, name=f"other {n}", spec=a_spec(), author=alice) for n in range(3)]
    for number, pipe in enumerate([truth.pipe, *others]):
        go_live(pipe)
        its = Truth(pipe)
        its.seal(LAST - 7, accepted=600 + number, lost=number)
        its.moved(LAST, [number])
        its.fact(LAST, "transmit:crm", "dead", [number], "rejected")
        its.lag(LAST - 7, "transmit:crm", "out", [10_000 * (number + 1)] * 20)
        its.lag(LAST, "transmit:crm", "out", [90_000 * (number + 1)])
    keep_rollups(start_of(LAST), 60)
    assert PipeRollup.objects.filter(is_final=True).exists()
    every = [truth.pipe.id, *(pipe.id for pipe in others)]
    apart, whole = trends_of(every[:2], HOUR, others=every[2:]), trends_of(every, HOUR)
    assert apart.total == whole.total
    assert apart.by_pipe == {pipe_id: whole.by_pipe[pipe_id] for pipe_id in every[:2]}
    assert trends_of([], HOUR, others=every) == ({}, whole.total)
