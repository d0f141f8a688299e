"""The log line and the metric of a request: action, result, tenant and pipe."""

import pytest
import structlog
from django.test import Client

from config import middleware
from config.metrics_server import REQUEST_S
from mgmt.models import Pipe, User

pytestmark = pytest.mark.django_db


@pytest.fixture
def alices(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def counted(route: str, status: str) -> float:
    return sum(
        sample.value
        for family in REQUEST_S.collect()
        for sample in family.samples
        if sample.name.endswith("_count") and sample.labels == {"route": route, "status": status}
    )


def test_change_is_logged_with_request_tenant_and_pipe(alices: Client, pipe: Pipe):
    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        alices.post(f"/pipes/{pipe.id}/pause/", headers={"X-Request-Id": "a-request-id"})
    (found,) = [line for line in lines if line["event"] == "request"]
    assert found.pop("took_ms") > 0
    assert found == {
        "event": "request", "log_level": "info", "method": "POST", "route": "console:pause_pipe", "status": 302,
        "request_id": "a-request-id", "tenant": pipe.tenant_id, "pipe": pipe.id,
    }  # fmt: skip


def test_read_is_counted_and_not_logged_and_the_next_request_does_not_inherit_its_pipe(
    alices: Client, pipe: Pipe, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(middleware, "SLOW_S", 60.0)
    before = counted("console:pipe", "200")
    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        alices.get(f"/pipes/{pipe.id}/")
        alices.post("/theme/")
    (found,) = [line for line in lines if line["event"] == "request"]
    assert counted("console:pipe", "200") == before + 1
    assert "pipe" not in found


def test_slow_page_is_logged_although_it_changes_nothing(alices: Client, pipe: Pipe, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(middleware, "SLOW_S", 0.0)
    with structlog.testing.capture_logs() as lines:
        alices.get(f"/pipes/{pipe.id}/")
    assert [line["route"] for line in lines if line["event"] == "request"] == ["console:pipe"]


def test_unknown_path_gets_no_metric_of_its_own(alices: Client):
    before = counted("none", "404")
    alices.get("/no/such/path/")
    assert counted("none", "404") == before + 1
