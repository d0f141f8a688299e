"""Spans of pages and the API, if OpenTelemetry's variables enable tracing: one per request, named by its route.

A small middleware replaces OpenTelemetry's instrumentation of Django: see docs/decisions/0229.
"""

import atexit
import os
import socket
from collections.abc import Callable

from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse

from dataplane.ledger.traceparent import TRACEPARENT
from dataplane.runtime.telemetry.tracing import Tracing, tracing_from


def tracing_of(service: str) -> Tracing | None:
    """Return the tracing of this process, or None if it is not enabled; it is closed at the process's exit."""
    tracing = tracing_from(service, f"{socket.gethostname()}-{os.getpid()}")
    if tracing is not None:
        atexit.register(tracing.close)
    return tracing


class RequestTracing:
    """Records a span for each request, a child of the client's. The path is left out: some links contain secrets."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse], tracing: Tracing | None = None) -> None:
        tracing = tracing or tracing_of("penstock-web")
        if tracing is None:
            raise MiddlewareNotUsed
        self._tracing = tracing
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle one request within a span."""
        method = str(request.method)
        attributes = {"http.request.method": method, "url.scheme": str(request.scheme)}
        span = self._tracing.begin(method, "server", attributes, parent=request.headers.get(TRACEPARENT, ""))
        response = self.get_response(request)
        if span.is_recording():
            if request.resolver_match is not None:
                span.update_name(f"{method} {request.resolver_match.route}")
                span.set_attribute("http.route", request.resolver_match.route)
            span.set_attribute("http.response.status_code", response.status_code)
            span.set_attribute("penstock.request_id", request.META.get("penstock.request_id", ""))
            if response.status_code >= 500:
                self._tracing.fail(span, str(response.status_code))
            span.end()
        return response
