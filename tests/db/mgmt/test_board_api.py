"""API of the status board: the same figures as its page, for staff only."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries
from rest_framework.test import APIClient

from mgmt.alerts.services.alerts import FailureGroup, note_failures
from mgmt.cells.services.control import note
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import (
    Cell,
    CellVerdict,
    ControlAction,
    Destination,
    DestinationHealth,
    KafkaCheck,
    Pipe,
    TaskRun,
    User,
)
from mgmt.services import create_pipe, create_tenant
from tests.db.cast import MakeClient, MakeSpec
from tests.db.console.truth import Truth, go_live

pytestmark = pytest.mark.django_db
BASE = "/api/v1/staff"
QUERIES = {"board/": 34, "losses/": 5, "common-causes/": 5, "controllers/scale/history/": 4}


@pytest.fixture
def admin(client_of: MakeClient) -> APIClient:
    return client_of(User.objects.create_superuser("admin"))


@pytest.fixture
def trouble(pipe: Pipe, charlie: User, a_spec: MakeSpec) -> list[Pipe]:
    """Two tenants whose destination answers 503, an unstable cell, a loss, a refusal and a missing broker."""
    now = timezone.now()
    tenant = create_tenant(name="Other", owner=charlie)
    pipes = [pipe, create_pipe(tenant=tenant, name="refunds", spec=a_spec(), author=charlie)]
    for number, row in enumerate(pipes):
        go_live(row)
        sample = {"status": 503, "answer": "503\ndown"}
        failure = FailureGroup(row.id, "crm", "server-error", 3, now, sample, status=503, fingerprint="abc")
        note_failures(failures=[failure], now=now)
        Truth(row).seal(bucket_at(now) - 5, accepted=10, lost=number + 1)
        oldest = now - timedelta(minutes=10 * number)
        DestinationHealth.objects.create(
            destination=Destination.objects.get(pipe=row), checked_at=now, waiting=4, oldest_at=oldest
        )
    CellVerdict.objects.create(cell_id="c1", state="unstable", reasons=["why"], kinds=["behind"], since=now, at=now)
    brokers = [{"id": 1, "address": "kafka-1:9092", "alive": False}]
    KafkaCheck.objects.create(cluster="main", at=now, since=now, state="degraded", brokers=brokers, under_replicated=2)
    TaskRun.objects.create(task="autoscaler.tick", at=now, outcome="changed", since=now, said="process 1 -> 2")
    for _ in range(3):
        refused = ControlAction.Outcome.REFUSED
        note("scale", "scale", outcome=refused, at=now, cell="c1", refusal="cell-unstable", reason="c1 is unstable")
    return pipes


def got(client: APIClient, path: str, **query: Any) -> Any:
    answer = client.get(f"{BASE}/{path}", query)
    assert answer.status_code == 200, answer.json()
    return answer.json()


def test_board_has_problems_cells_controllers_brokers_and_the_oldest_message(admin: APIClient, trouble: list[Pipe]):
    board = got(admin, "board/")
    assert [(one["kind"], one["affected"]) for one in board["problems"]] == [
        ("behind", {"tenants": 2, "pipes": 2}),
        ("kafka-degraded", None),
    ]
    (cell,) = board["cells"]
    assert (cell["id"], cell["verdict"]["state"], cell["lanes_running"], cell["lost"]) == ("c1", "unstable", 0, 3)
    assert (len(cell["rates"]), len(cell["lags_us"])) == (12, 12)
    scale = next(one for one in board["controllers"] if one["name"] == "scale")
    assert (scale["run"]["outcome"], scale["last"]["outcome"], scale["last"]["refusal"]) == (
        "changed",
        "refused",
        "cell-unstable",
    )
    assert (board["kafka"]["state"], board["kafka"]["brokers"][0]["alive"]) == ("degraded", False)
    assert (board["oldest"]["pipe"], board["lost"]) == (trouble[1].id, 3)
    assert board["ingest"] == {"wanted": 0, "running": 0}
    assert board["common_causes"] == got(admin, "common-causes/")


def test_common_cause_names_host_status_tenants_and_alerts(admin: APIClient, trouble: list[Pipe]):
    (cause,) = got(admin, "common-causes/")
    assert (cause["words"], cause["tenants"], cause["pipes"]) == ("crm.example.com returns 503", 2, 2)
    assert {alert["pipe"] for alert in cause["alerts"]} == {pipe.id for pipe in trouble}
    assert {alert["tenant_name"] for alert in cause["alerts"]} == {"Alice's", "Other"}


def test_losses_are_listed_page_by_page(admin: APIClient, trouble: list[Pipe]):
    first = got(admin, "losses/", limit=1)
    rest = got(admin, "losses/", limit=1, before=first["next_before"])
    assert rest["next_before"] is None
    lines = [*first["results"], *rest["results"]]
    assert {(line["pipe"], line["loss"]["lost"]) for line in lines} == {(trouble[0].id, 1), (trouble[1].id, 2)}
    assert admin.get(f"{BASE}/losses/", {"before": "x"}).json()["code"] == "parameter-invalid"
    assert admin.get(f"{BASE}/losses/", {"range": "1y"}).json()["code"] == "parameter-invalid"


def test_history_folds_equal_refusals_and_filters_by_outcome(admin: APIClient, trouble: list[Pipe]):
    (line,) = got(admin, "controllers/scale/history/")["results"]
    assert (line["outcome"], line["refusal"], line["count"], line["cell"]) == ("refused", "cell-unstable", 3, "c1")
    assert got(admin, "controllers/scale/history/", outcome="done")["results"] == []
    assert admin.get(f"{BASE}/controllers/scale/history/", {"outcome": "asked"}).json()["code"] == "parameter-invalid"
    assert admin.get(f"{BASE}/controllers/person/history/").status_code == 404


@pytest.mark.parametrize("path", QUERIES)
def test_customers_get_404_and_the_query_count_is_constant(
    admin: APIClient, trouble: list[Pipe], charlie: User, client_of: MakeClient, path: str,
    django_assert_num_queries: DjangoAssertNumQueries,
):  # fmt: skip
    assert client_of(charlie).get(f"{BASE}/{path}").status_code == 404
    with django_assert_num_queries(QUERIES[path]):
        got(admin, path)
    now = timezone.now()
    for number in range(2, 7):
        cell = Cell.objects.create(id=f"c{number}")
        CellVerdict.objects.create(cell=cell, state="unstable", reasons=["why"], since=now, at=now)
        Truth(trouble[0]).seal(bucket_at(now) - 10 - number, accepted=10, lost=1)
        note("scale", "scale-out", outcome=ControlAction.Outcome.DONE, at=now, cell=cell.id)
    with django_assert_num_queries(QUERIES[path]):
        got(admin, path)
