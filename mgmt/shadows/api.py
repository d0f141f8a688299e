"""Shadow runs of a pipe: a draft over real events, compared with what the pipe has sent."""

from dataclasses import asdict
from typing import Any

from django.urls import reverse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.models import Shadow
from mgmt.pipes.serializers import RevisionOut
from mgmt.services import ShadowRequest, promote_shadow, start_shadow, stop_shadow
from mgmt.shadows.presenters import cost_of, fields_of, samples_of
from mgmt.shadows.queries import shadows_of
from mgmt.shadows.serializers import (
    SHADOW_DETAIL_EXAMPLE,
    SHADOWS_EXAMPLE,
    ShadowCostOut,
    ShadowDetailOut,
    ShadowFieldOut,
    ShadowIn,
    ShadowOut,
    ShadowPageOut,
    ShadowSampleOut,
)
from mgmt.web import access
from mgmt.web.api_view import View, body_of
from mgmt.web.openapi import LOCATION, PAGE_PARAMETERS, answers, example, operation
from mgmt.web.pagination import KeysetPage, page_of
from mgmt.web.throttling import ApiThrottle, ComparisonThrottle

DRAFT_ERRORS = (
    "invalid",
    "role-too-low",
    "not-found",
    "pipe-closed",
    "revision-conflict",
    "unchanged",
    "quota-exceeded",
    "spec-invalid",
    "destination-forbidden",
    "too-expensive",
    "too-many-at-once",
)


class ShadowsView(View):
    """Shadow runs of a pipe."""

    def get_throttles(self) -> list[Any]:
        """Return the throttles; a start counts as a comparison, too."""
        starts = self.request.method == "POST"
        return [ApiThrottle(), ComparisonThrottle()] if starts else [ApiThrottle()]

    @operation(
        "list_shadows",
        parameters=PAGE_PARAMETERS,
        responses=answers(200, ShadowPageOut, "not-found"),
        examples=[example(SHADOWS_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str) -> Response:
        """List a pipe's shadow runs, newest first."""
        rows = shadows_of(access.get_pipe(self.user, pipe)).defer("spec", "samples", "fields")
        found, paginator = page_of(rows, request, KeysetPage())
        return paginator.get_paginated_response(ShadowOut(found, many=True).data)

    @operation(
        "start_shadow",
        parameters=[LOCATION],
        request=ShadowIn,
        responses=answers(
            201,
            ShadowOut,
            *DRAFT_ERRORS,
            "relocation-under-way",
            "shadow-under-way",
            "not-comparable",
            "body-too-large",
            "media-type",
        ),
    )
    def post(self, request: Request, pipe: str) -> Response:
        """Run a draft over real events of the pipe without sending, and compare it with what the pipe has sent.

        The events are the newest ones, those of a range of ingest times, or with `follow` those that arrive until the
        run is stopped. Messages are compared by destination. A tenant has one run at a time.
        """
        row = access.get_pipe(self.user, pipe, access.PUBLISH_REVISION)
        body = body_of(request, ShadowIn)
        spec, based_on = body.pop("spec"), body.pop("based_on")
        now = timezone.now()
        shadow = start_shadow(
            pipe=row, spec=spec, based_on=based_on, request=ShadowRequest(**body), by=self.user, now=now
        )
        location = reverse("api:shadow", args=[row.id, shadow.id])
        return Response(ShadowOut(shadow).data, status=201, headers={"Location": location})


class ShadowView(View):
    """One shadow run."""

    @operation(
        "get_shadow",
        responses=answers(200, ShadowDetailOut, "not-found"),
        examples=[example(SHADOW_DETAIL_EXAMPLE)],
    )
    def get(self, _request: Request, pipe: str, shadow: str) -> Response:
        """Return a shadow run with its draft, the fields that differ, samples, and the CPU time of both."""
        return Response(_detail(access.get_shadow(self.user, pipe, shadow)))


class StopShadowView(View):
    """Stop of a shadow run."""

    @operation("stop_shadow", request=None, responses=answers(200, ShadowOut, "role-too-low", "not-found"))
    def post(self, _request: Request, pipe: str, shadow: str) -> Response:
        """Stop a shadow run; what it has compared is kept. Of one that has ended, returns it as is."""
        row = access.get_shadow(self.user, pipe, shadow, access.MOVE_MESSAGES)
        stop_shadow(shadow=row, now=timezone.now(), by=self.user)
        return Response(ShadowOut(row).data)


class PromoteShadowView(View):
    """Promotion of a shadow run's draft."""

    @operation(
        "promote_shadow",
        parameters=[LOCATION],
        request=None,
        responses=answers(201, RevisionOut, *DRAFT_ERRORS, "credential-needed"),
    )
    def post(self, _request: Request, pipe: str, shadow: str) -> Response:
        """Publish the draft of a shadow run as the next revision, which ramps as usual, and stop the run.

        Fails with `revision-conflict` if a revision was published after the run began.
        """
        row = access.get_shadow(self.user, pipe, shadow, access.PUBLISH_REVISION)
        revision = promote_shadow(shadow=row, author=self.user, now=timezone.now())
        location = reverse("api:revision", args=[row.pipe_id, revision.number])
        return Response(RevisionOut(revision).data, status=201, headers={"Location": location})


def _detail(row: Shadow) -> dict[str, Any]:
    cost = cost_of(row)
    samples = (
        {**asdict(one), "url": reverse("api:message", args=[row.pipe_id, one.position])} for one in samples_of(row)
    )
    return {
        **ShadowOut(row).data,
        "spec": row.spec,
        "field_differences": ShadowFieldOut(fields_of(row), many=True).data,
        "rejected": row.rejected,
        "samples": ShadowSampleOut(samples, many=True).data,
        "cost": ShadowCostOut(cost).data if cost else None,
    }
