"""API of the home page: the problems of a tenant, and its pipes with their figures."""

from itertools import chain

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.alerts.queries.active_problems import active_problems
from mgmt.alerts.queries.alerts import open_alert_count
from mgmt.deliveries.queries.health import health_rows
from mgmt.deliveries.undelivered_views import problems_of
from mgmt.ledger.queries.bucket_range import DEFAULT_SPAN, span_until
from mgmt.ledger.queries.trends import trends_of
from mgmt.pipes.queries.pipes import pipe_lines, rates_of
from mgmt.pipes.summary_serializers import (
    PIPE_SUMMARIES_EXAMPLE,
    SUMMARY_EXAMPLE,
    PipeSummaryOut,
    PipeSummaryPageOut,
    SummaryOut,
)
from mgmt.web import access
from mgmt.web.api_view import View
from mgmt.web.openapi import LIMIT, PAGE_PARAMETERS, answers, example, operation
from mgmt.web.pagination import MAX_LIMIT, KeysetPage, limit_of, page_of


class SummaryView(View):
    """Problems of a tenant."""

    @operation(
        "get_summary",
        parameters=[LIMIT],
        responses=answers(200, SummaryOut, "not-found"),
        examples=[example(SUMMARY_EXAMPLE)],
    )
    def get(self, request: Request, tenant: str) -> Response:
        """Return a tenant's problems: open alerts, suspended destinations, failed revisions and lost messages."""
        row, limit = access.get_tenant(self.user, tenant), limit_of(request, MAX_LIMIT)
        found = active_problems(row, timezone.now())
        lists = {name: getattr(found, name)[:limit] for name in ("alerts", "suspended", "failed", "lost")}
        counts = {"total": len(found), "unacknowledged_alerts": open_alert_count(row.id)}
        return Response(SummaryOut(counts | lists).data)


class PipeSummariesView(View):
    """Pipes of a tenant with their figures."""

    @operation(
        "list_pipe_summaries",
        parameters=PAGE_PARAMETERS,
        responses=answers(200, PipeSummaryPageOut, "not-found"),
        examples=[example(PIPE_SUMMARIES_EXAMPLE)],
    )
    def get(self, request: Request, tenant: str) -> Response:
        """List a tenant's pipes with rate, lag, deliveries, losses and problems of the last hour, newest pipe first."""
        row, now = access.get_tenant(self.user, tenant), timezone.now()
        pipes, paginator = page_of(access.pipes_of(self.user).filter(tenant=row), request, KeysetPage())
        span, troubles = span_until(DEFAULT_SPAN, now), problems_of(pipes, now)
        ids = [pipe.id for pipe in pipes]
        health = health_rows(ids) if pipes else {}
        trends = trends_of(ids, span, chain.from_iterable(health.values())).by_pipe if pipes else {}
        rates = rates_of(ids, now) if pipes else {}
        lines = pipe_lines(pipes=pipes, troubles=troubles, trends=trends, health=health, rates=rates)
        return paginator.get_paginated_response(PipeSummaryOut(lines, many=True).data)
