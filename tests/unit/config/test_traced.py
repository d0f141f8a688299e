"""Spans of pages, API and tasks: named by route, children of the caller's span, and without paths."""

from types import SimpleNamespace

import pytest
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from opentelemetry.trace import SpanKind, StatusCode

from config.task_tracing import TaskTracing
from config.tracing import RequestTracing as Middleware
from tests.support.traces import SENDER, TRACE, TRACE_ID, Traced, attributes_of, parent_of, trace_of


def asked(traced: Traced, status: int = 200, route: str | None = "receipts/<str:message>/", **headers: str) -> None:
    def answer(request: HttpRequest) -> HttpResponse:
        request.resolver_match = SimpleNamespace(route=route) if route else None  # type: ignore[assignment]
        return HttpResponse(status=status)

    request = RequestFactory().get("/receipts/a-secret/?token=secret", headers=headers)
    request.META["penstock.request_id"] = "a-request-id"
    Middleware(answer, traced.tracing)(request)


def test_request_records_a_span_named_by_its_route():
    traced = Traced()
    asked(traced, traceparent=TRACE)
    (span,) = traced.spans
    assert (span.name, span.kind) == ("GET receipts/<str:message>/", SpanKind.SERVER)
    assert (trace_of(span), parent_of(span)) == (TRACE_ID, SENDER)
    assert attributes_of(span) == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "http.route": "receipts/<str:message>/",
        "penstock.request_id": "a-request-id",
        "url.scheme": "http",
    }
    assert "secret" not in span.to_json()


def test_unmatched_path_has_no_route_and_a_server_error_is_an_error_span():
    traced = Traced()
    asked(traced, 404, None)
    asked(traced, 503)
    lost, failed = traced.spans
    assert (lost.name, lost.status.status_code) == ("GET", StatusCode.UNSET)
    assert (failed.status.status_code, attributes_of(failed)["error.type"]) == (StatusCode.ERROR, "503")


def test_middleware_is_not_used_without_tracing():
    with pytest.raises(MiddlewareNotUsed):
        Middleware(lambda _request: HttpResponse())


@pytest.mark.parametrize(("state", "status"), [("SUCCESS", StatusCode.UNSET), ("FAILURE", StatusCode.ERROR)])
def test_task_records_a_span(state: str, status: StatusCode):
    traced = Traced()
    tasks = TaskTracing(traced.tracing)
    tasks.begin("1", SimpleNamespace(name="provisioner.tick"))
    tasks.end(task_id="1", state=state)
    (span,) = traced.spans
    assert (span.name, span.status.status_code, parent_of(span)) == ("provisioner.tick", status, "")
