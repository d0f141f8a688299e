"""Schemas of sources: list, read, register."""

from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.schemas.queries import newest_event_by, schemas_of
from mgmt.schemas.serializers import NewSourceSchemaOut, SourceSchemaIn, SourceSchemaOut, SourceSchemaPageOut
from mgmt.services import SchemaIncompatibleError, register_schema
from mgmt.web import access
from mgmt.web.api_view import View, body_of
from mgmt.web.handlers import breaking_error
from mgmt.web.openapi import LOCATION, PAGE_PARAMETERS, answers, operation
from mgmt.web.pagination import RevisionPage, page_of
from mgmt.web.parsers import SchemaParser
from mgmt.web.problems import ProblemError


class SchemasView(View):
    """Versions of a source's schema."""

    parser_classes = [SchemaParser]

    @operation(
        "list_source_schemas",
        parameters=PAGE_PARAMETERS,
        responses=answers(200, SourceSchemaPageOut, "parameter-invalid", "not-found"),
    )
    def get(self, request: Request, pipe: str, source: str) -> Response:
        """List the versions of a source's schema, newest first. Ingest applies the newest version."""
        rows, paginator = page_of(schemas_of(access.get_source(self.user, pipe, source)), request, RevisionPage())
        return paginator.get_paginated_response(SourceSchemaOut(rows, many=True).data)

    @operation(
        "register_source_schema",
        parameters=[LOCATION],
        request=SourceSchemaIn,
        responses=answers(
            (200, 201),
            NewSourceSchemaOut,
            "invalid",
            "role-too-low",
            "not-found",
            "schema-breaking",
            "body-too-large",
            "media-type",
            "schema-invalid",
        ),
    )
    def post(self, request: Request, pipe: str, source: str) -> Response:
        """Register the next version of a schema. Returns 200 and the newest version if the two are the same.

        Fails with `schema-breaking` if the new version could refuse an event that the previous one accepts; `errors`
        names each field.
        """
        row = access.get_source(self.user, pipe, source, access.REGISTER_SCHEMA)
        document = body_of(request, SourceSchemaIn)["schema"]
        try:
            made, is_new = register_schema(source=row, document=document, author=self.user)
        except SchemaIncompatibleError as exc:
            tried = newest_event_by(row, document)
            errors = [breaking_error(one) for one in exc.broken]
            raise ProblemError(exc.code, f"{exc} {tried}" if tried else str(exc), errors) from exc
        tried = newest_event_by(row, document)
        body = SourceSchemaOut(made).data | {"newest_event": str(tried) if tried else None}
        location = reverse("api:source-schema", args=[pipe, source, made.number])
        return Response(body, status=201 if is_new else 200, headers={"Location": location})


class SchemaView(View):
    """One version of a source's schema."""

    @operation("get_source_schema", responses=answers(200, SourceSchemaOut, "not-found"))
    def get(self, _request: Request, pipe: str, source: str, number: int) -> Response:
        """Return a version of a source's schema as it was registered."""
        return Response(SourceSchemaOut(access.get_schema(self.user, pipe, source, number)).data)
