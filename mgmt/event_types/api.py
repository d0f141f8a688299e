"""Event types of sources: read and replace; the AsyncAPI document of a tenant."""

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.event_types.asyncapi import asyncapi_document
from mgmt.event_types.queries import catalogue_sources, event_types_of, type_settings_of
from mgmt.event_types.serializers import EventTypesIn, EventTypesOut
from mgmt.models import Source
from mgmt.services import set_event_types
from mgmt.web import access
from mgmt.web.api_view import View, body_of, tenant_for
from mgmt.web.openapi import answers, operation
from mgmt.web.pagination import text_of


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


def _event_types(source: Source) -> Response:
    row = type_settings_of(source)
    found = {"version": row.version, "type_from": row.type_from, "types": event_types_of(source)}
    return Response(EventTypesOut(found).data)
