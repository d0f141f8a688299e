"""Middleware of every request: the client's address, an id for logs and errors, a content policy."""

import functools
import re
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Final, cast

import structlog
from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.middleware.common import CommonMiddleware

from config.metrics_server import REQUEST_S
from config.proxies import client_address, is_trusted
from mgmt.audit.origin import request_from
from mgmt.models import User
from mgmt.tenancy.queries import tenant_ids_of
from mgmt.tenancy.row_scope import NO_TENANT, current_scope, in_scope, open_to_staff, restrict_to, row_scope

SLOW_S: Final = 1.0
_SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
log = structlog.get_logger(__name__)
_GOOD_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")


class ClientAddress:
    """Sets REMOTE_ADDR to the client's address if a trusted proxy names it, and drops X-Forwarded-* of other peers.

    Without a trusted proxy in front, a client can send any X-Forwarded-For, -Proto, -Host and -Port.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle one request."""
        meta, proxies = request.META, settings.PENSTOCK_TRUSTED_PROXIES
        peer = meta.get("REMOTE_ADDR", "")
        if is_trusted(peer, proxies):
            meta["REMOTE_ADDR"] = client_address(peer, meta.get("HTTP_X_FORWARDED_FOR", ""), proxies)
        else:
            for name in [name for name in meta if name.startswith("HTTP_X_FORWARDED_")]:
                del meta[name]
        return self.get_response(request)


class RequestId:
    """Takes a well-formed X-Request-Id or makes one, binds it to the logs, and returns it in the response."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle one request."""
        received = request.headers.get("X-Request-Id", "")
        request_id = received if _GOOD_ID.fullmatch(received) else uuid.uuid4().hex
        request.META["penstock.request_id"] = request_id
        structlog.contextvars.clear_contextvars()  # of the request that this thread answered before
        structlog.contextvars.bind_contextvars(request_id=request_id)
        response = self.get_response(request)
        response["X-Request-Id"] = request_id
        return response


class AuditOrigin:
    """Names the client's address and the request's id to the entries that the request adds to audit logs."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle one request."""
        with request_from(request.META.get("REMOTE_ADDR", ""), request.META["penstock.request_id"]):
            return self.get_response(request)


class RowScopeOfRequest:
    """Shows Postgres' rows of the tenants of the session's user to the request; without a session, of none.

    Token and Basic authentication set the scope of their user (mgmt.web.authentication). The admin site checks that
    the user is staff for each of its pages.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Handle one request."""
        with row_scope(NO_TENANT):
            if settings.SESSION_COOKIE_NAME in request.COOKIES and isinstance(request.user, User):
                restrict_to(tenant_ids_of(request.user))
                if request.user.is_staff and request.path_info.startswith("/admin/"):
                    open_to_staff()
            response = self.get_response(request)
            if isinstance(response, StreamingHttpResponse):
                parts = cast("Iterator[bytes]", response.streaming_content)  # the server is not asynchronous
                response.streaming_content = in_scope(current_scope(), iter(parts))
        return response


class RequestMetrics:
    """Times every request; requests that change something, fail or are slow get a log line.

    The line has the request's id, and tenant and pipe where mgmt.web.access has bound them.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle one request."""
        began = time.perf_counter()
        response = self.get_response(request)
        took_s = time.perf_counter() - began
        route = request.resolver_match.view_name if request.resolver_match else "none"
        REQUEST_S.labels(route, str(response.status_code)).observe(took_s)
        changes = request.method not in _SAFE_METHODS
        if changes or response.status_code >= 500 or took_s > SLOW_S:
            took_ms = round(took_s * 1_000, 1)
            log.info("request", method=request.method, route=route, status=response.status_code, took_ms=took_ms)
        return response


class SlashAppending(CommonMiddleware):
    """Django's CommonMiddleware, except that a POST to a path without its last slash is redirected as a POST."""

    response_redirect_class = functools.partial(HttpResponsePermanentRedirect, preserve_request=True)  # type: ignore[assignment]


class ContentSecurityPolicy(CSPMiddleware):  # type: ignore[misc]  # the package is not followed by mypy
    """Sends the strict policy everywhere except under /admin/, whose pages evaluate expressions."""

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        """Return the admin's own directives under /admin/, those of the settings elsewhere."""
        parts = super().get_policy_parts(request, response, report_only)
        if request.path_info.startswith("/admin/") and not report_only:
            parts.config = settings.ADMIN_CONTENT_SECURITY_POLICY
        return parts
