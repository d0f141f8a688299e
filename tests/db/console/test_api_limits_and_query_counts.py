"""Bounds of the endpoints that read figures: parameters are checked, and query counts do not grow with the rows.

The numbers are baselines: lower them if you can.
"""

import pytest
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries
from rest_framework.test import APIClient

from mgmt.models import Membership, User
from mgmt.services import add_member, create_pipe
from mgmt.web import throttling
from tests.db.cast import MakeSpec
from tests.db.console.truth import Truth, go_live
from tests.db.console.undelivered import open_alert, store_dead, store_held

pytestmark = pytest.mark.django_db
QUERIES = {
    "pipes/{pipe}/timing/": 6,
    "pipes/{pipe}/lag/": 6,
    "pipes/{pipe}/minutes/": 11,
    "pipes/{pipe}/minutes/{minute}/": 12,
    "pipes/{pipe}/minutes/{minute}/losses/": 9,
    "pipes/{pipe}/minutes/{minute}/units/": 9,
    "pipes/{pipe}/attempts/": 5,
    "pipes/{pipe}/slowest-messages/": 10,
    "pipes/{pipe}/undelivered/": 15,
    "pipes/{pipe}/waiting/": 6,
    "pipes/{pipe}/destinations/crm/state/": 17,
    "pipes/{pipe}/messages/1-0-7/": 13,
    "pipes/{pipe}/revisions/1/diff/": 5,
    "tenants/{tenant}/summary/": 17,
    "tenants/{tenant}/pipes/": 30,
    "tenants/{tenant}/undelivered/": 16,
    "tenants/{tenant}/members/": 5,
    "tenants/{tenant}/usage/": 7,
}
LIMITED = (
    "pipes/{pipe}/lag/",
    "pipes/{pipe}/minutes/",
    "pipes/{pipe}/minutes/{minute}/losses/",
    "pipes/{pipe}/minutes/{minute}/units/",
    "pipes/{pipe}/attempts/",
    "pipes/{pipe}/undelivered/",
    "pipes/{pipe}/messages/",
    "tenants/{tenant}/summary/",
    "tenants/{tenant}/pipes/",
    "tenants/{tenant}/undelivered/",
    "tenants/{tenant}/members/",
    "tenants/{tenant}/usage/",
    "tenants/{tenant}/messages/",
)
OTHERS = ("pipes/{pipe}/tail/", "me/", "pipes/", "pipes/{pipe}/", "pipes/{pipe}/dead-letters/")
INVALID = (
    ("pipes/{pipe}/lag/", "range", "1y"),
    ("pipes/{pipe}/minutes/", "range", "1y"),
    ("pipes/{pipe}/minutes/", "cursor", "x"),
    ("pipes/{pipe}/minutes/", "cursor", "cD1hYmM="),
    ("pipes/{pipe}/slowest-messages/", "stage", "no such"),
    ("pipes/{pipe}/slowest-messages/", "range", "1y"),
    ("pipes/{pipe}/minutes/{minute}/losses/", "offset", "-1"),
    ("pipes/{pipe}/minutes/{minute}/units/", "bin", "gone"),
    ("pipes/{pipe}/attempts/", "outcome", "no such"),
    ("pipes/{pipe}/attempts/", "cause", "no such"),
    ("pipes/{pipe}/attempts/", "status", "600"),
    ("pipes/{pipe}/attempts/", "since", "yesterday"),
    ("pipes/{pipe}/attempts/", "cursor", "cD0yMDI2LTAyLTMwKzAwJTNBMDAlM0EwMCUyQjAwJTNBMDA="),  # February 30
    ("pipes/{pipe}/destinations/crm/state/", "range", "1y"),
    ("pipes/{pipe}/messages/1-0-7/", "child", "-1"),
    ("pipes/{pipe}/messages/1-0-7/", "minute", "1e9"),
    ("pipes/{pipe}/messages/", "q", ""),
    ("pipes/{pipe}/messages/", "q", "x" * 201),
    ("pipes/{pipe}/revisions/1/diff/", "against", "0"),
    ("tenants/{tenant}/usage/", "range", "1y"),
)


def path_of(template: str, truth: Truth, bucket: int) -> str:
    return "/api/v1/" + template.format(pipe=truth.pipe.id, tenant=truth.pipe.tenant_id, minute=bucket)


@pytest.mark.parametrize(("template", "queries"), QUERIES.items(), ids=list(QUERIES))
def test_query_count_is_the_baseline_for_few_rows_and_many(
    api: APIClient,
    truth: Truth,
    alice: User,
    a_spec: MakeSpec,
    bucket: int,
    template: str,
    queries: int,
    django_assert_num_queries: DjangoAssertNumQueries,
):
    path, now = path_of(template, truth, bucket), timezone.now()
    store_dead(truth.pipe, range(100, 102), now)
    store_held(truth.pipe, range(2), now)
    open_alert(truth.pipe, now)
    api.get(path)
    with django_assert_num_queries(queries):
        assert api.get(path).status_code == 200
    store_dead(truth.pipe, range(102, 130), now, cause="expired")
    store_held(truth.pipe, range(2, 30), now)
    for number in range(1, 9):
        truth.moved(bucket - number, [100 + number])
        truth.lag(bucket - number, "normalize", "out", [5_000])
        truth.attempt(bucket, 200 + number, "retry", status=500)
        pipe = create_pipe(tenant=truth.pipe.tenant, name=f"more {number}", spec=a_spec(), author=alice)
        go_live(pipe)
        Truth(pipe).moved(bucket, [300 + number])
        user = User.objects.create_user(f"member-{number}")
        add_member(tenant=truth.pipe.tenant, user=user, role=Membership.Role.VIEWER)
    with django_assert_num_queries(queries):
        assert api.get(path).status_code == 200


def refusal(api: APIClient, path: str, query: dict[str, str]) -> tuple[int, str, str]:
    """Return the status, the code and the named parameter of an answer."""
    answer = api.get(path, query)
    found = answer.json()
    named = [error["parameter"] for error in found.get("errors", [])]
    return answer.status_code, found.get("code", ""), ", ".join(named)


def test_limit_out_of_range_is_refused(api: APIClient, truth: Truth, bucket: int):
    for template in LIMITED:
        for limit in ("1000000000", "201", "0", "-1", "x", ""):
            found = refusal(api, path_of(template, truth, bucket), {"limit": limit})
            assert found == (400, "parameter-invalid", "limit"), (template, limit)


def test_unknown_parameter_is_refused_by_its_name(api: APIClient, truth: Truth, bucket: int):
    for template in {*QUERIES, *LIMITED, *OTHERS}:
        found = refusal(api, path_of(template, truth, bucket), {"destinatoin": "crm"})
        assert found == (400, "parameter-invalid", "destinatoin"), template


def test_invalid_value_is_refused_by_the_name_of_its_parameter(api: APIClient, truth: Truth, bucket: int):
    for template, parameter, value in INVALID:
        found = refusal(api, path_of(template, truth, bucket), {parameter: value})
        assert found == (400, "parameter-invalid", parameter), (template, value)


@pytest.mark.parametrize("name", ["timing", "lag", "minutes", "slowest-messages"])
@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ({"since": "2026-05-03T11:00:00Z"}, "until"),
        ({"until": "2026-05-03T11:00:00Z"}, "since"),
        ({"since": "2026-05-03T11:00:00Z", "until": "2026-05-03T11:00:30Z"}, "until"),
        ({"since": "2026-05-01T11:00:00Z", "until": "2026-05-03T11:00:00Z"}, "until"),
        ({"since": "2026-05-03T11:00:00Z", "until": "2026-05-03T12:00:00Z", "range": "1h"}, "range"),
        ({"since": "9999-12-31T23:00:00Z", "until": "9999-12-31T23:30:00Z"}, "until"),
        ({"since": "yesterday", "until": "2026-05-03T12:00:00Z"}, "since"),
    ],
)
def test_range_of_two_times_that_cannot_be_used_is_refused(
    api: APIClient, truth: Truth, bucket: int, name: str, query: dict[str, str], parameter: str
):
    found = refusal(api, path_of(f"pipes/{{pipe}}/{name}/", truth, bucket), query)
    assert found == (400, "parameter-invalid", parameter)


def test_text_with_a_zero_character_matches_nothing(api: APIClient, truth: Truth, bucket: int):
    path = path_of("pipes/{pipe}/attempts/", truth, bucket)
    assert api.get(path, {"message_id": "m\x00"}).json()["results"] == []


def test_reads_from_the_brokers_have_a_limit_of_their_own(
    api: APIClient, truth: Truth, bucket: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(throttling.BrokerReadThrottle, "limit", throttling.BROKER_READS._replace(most=2))
    paths = [path_of(name, truth, bucket) for name in ("pipes/{pipe}/messages/1-0-7/", "pipes/{pipe}/attempts/")]
    assert [api.get(paths[0]).status_code for _ in range(3)] == [200, 200, 429]
    assert api.get(paths[1]).status_code == 200, "other operations have the usual limit"
