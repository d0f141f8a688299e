"""Latency through the API: the figures of the pipe page."""

import pytest
from django.utils import timezone

from dataplane.ledger.breakdown import Slice
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Pipe, User
from tests.db.cast import MakeClient
from tests.db.console.truth import Truth

pytestmark = pytest.mark.django_db


def test_slices_add_up_to_the_whole(client_of: MakeClient, alice: User, pipe: Pipe):
    truth, bucket = Truth(pipe), bucket_at(timezone.now()) - 1
    truth.lag(bucket, "normalize", "in", [2_000])
    truth.lag(bucket, "normalize", "own", [300])
    truth.delivered(bucket, {Slice.INGEST: 2_000, Slice.RETRY: 90_000, Slice.TRANSMIT: 8_000}, source_us=-70)
    found = client_of(alice).get(f"/api/v1/pipes/{pipe.id}/timing/", {"range": "15m"}).json()
    assert found["range"] == "15m"
    assert [part["name"] for part in found["parts"]] == ["ingest", "retry wait", "transmit"]
    assert sum(part["p95_us"] for part in found["parts"]) == found["whole"]["p95_us"]
    assert sum(part["mean_us"] for part in found["parts"]) == found["mean_us"] == 100_000
    assert (found["source_lag"]["max_us"], found["whole"]["max_us"]) == (-70, 100_000)
    normalize = next(node for node in found["nodes"] if node["node"] == "normalize")
    assert (normalize["lag_in"]["max_us"], normalize["lag_out"], normalize["process_duration"]["count"]) == (
        2_000,
        None,
        1,
    )


def test_pipe_without_deliveries_has_no_slices(client_of: MakeClient, alice: User, pipe: Pipe):
    found = client_of(alice).get(f"/api/v1/pipes/{pipe.id}/timing/").json()
    assert (found["range"], found["nodes"], found["parts"], found["whole"]) == ("1h", [], [], None)


def test_unknown_range_is_a_problem_and_pipe_of_another_tenant_is_not_found(
    client_of: MakeClient, alice: User, charlie: User, pipe: Pipe
):
    url = f"/api/v1/pipes/{pipe.id}/timing/"
    problem = client_of(alice).get(url, {"range": "1y"})
    assert (problem.status_code, problem.json()["code"]) == (400, "parameter-invalid")
    assert client_of(charlie).get(url).status_code == 404
