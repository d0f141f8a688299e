"""Event types of sources: read and replace; the AsyncAPI document of a tenant."""

from django.conf import settings
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.event_types.asyncapi import asyncapi_document
from mgmt.event_types.queries import catalogue_sources, event_types_of, type_settings_of
from mgmt.event_types.serializers import EventTypesIn, EventTypesOut, TrafficOut
from mgmt.event_types.traffic import DEFAULT_RANGE, RANGES_H, traffic_of
from mgmt.models import Source
from mgmt.services import set_event_types
from mgmt.web import access
from mgmt.web.api_view import View, body_of, tenant_for
from mgmt.web.openapi import answers, operation
from mgmt.web.pagination import choice_of, text_of


class EventTypesView(View):
    """Event types of a source."""

    @operation("get_event_types", responses=answers(200, EventTypesOut, "not-found"))
    def get(self, _request: Request, pipe: str, source: str) -> Response:
        """Return the event types of a source. Without any, it accepts all events."""
        return _event_types(access.get_source(self.user, pipe, source))

    @operation(
        "set_event_types",
        request=EventTypesIn,
        responses=answers(
            200,
            EventTypesOut,
            "invalid",
            "role-too-low",
            "not-found",
            "event-types-conflict",
            "limit-reached",
            "pipe-closed",
            "body-too-large",
            "media-type",
        ),
    )
    def put(self, request: Request, pipe: str, source: str) -> Response:
        """Replace the event types of a source. Ingest applies them within seconds. Safe to repeat.

        Fails with `event-types-conflict` if `based_on` is not their version.
        """
        row = access.get_source(self.user, pipe, source, access.SET_EVENT_TYPES)
        body = body_of(request, EventTypesIn)
        set_event_types(
            source=row,
            type_from=body["type_from"],
            subjects=body["subjects"],
            by=self.user,
            based_on=body.get("based_on"),
        )
        return _event_types(row)


class AsyncApiView(View):
    """AsyncAPI document of a tenant."""

    @operation(
        "get_asyncapi",
        parameters=[OpenApiParameter("tenant", str, description="Needed only if you have several tenants.")],
        responses=answers(200, OpenApiTypes.OBJECT, "invalid", "not-found"),
    )
    def get(self, request: Request) -> Response:
        """Return the event types of a tenant as an AsyncAPI 3.0 document: a channel for each source that has any.

        Payloads are the newest versions of the subjects, as JSON Schema or Avro.
        """
        tenant = tenant_for(self.user, text_of(request, "tenant") or None, access.READ)
        url = str(settings.PENSTOCK_INGEST_URL)
        document = asyncapi_document(
            title=f"Events of {tenant.name}", ingest_url=url, sources=catalogue_sources(tenant.id)
        )
        return Response(document)


class SubjectTrafficView(View):
    """Traffic of the versions of a subject."""

    @operation(
        "get_subject_traffic",
        parameters=[
            OpenApiParameter("range", str, enum=list(RANGES_H), description="Hours up to now; the current one counts.")
        ],
        responses=answers(200, TrafficOut, "not-found", "parameter-invalid"),
    )
    def get(self, request: Request, subject: str) -> Response:
        """Return how many events ingest checked with each version, and how many it rejected, by source.

        Counts are of the last 24 hours, or of `range`, and kept for 31 days. Events that ingest had counted but not
        reported when its process was killed are missing here; the pipe's minutes have them.
        """
        row = access.get_subject(self.user, subject)
        chosen = choice_of(request, "range", list(RANGES_H), DEFAULT_RANGE)
        return Response(TrafficOut({"results": traffic_of(row, timezone.now(), chosen)}).data)


def _event_types(source: Source) -> Response:
    row = type_settings_of(source)
    found = {"version": row.version, "type_from": row.type_from, "types": event_types_of(source)}
    return Response(EventTypesOut(found).data)
