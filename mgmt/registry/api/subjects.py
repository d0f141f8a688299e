"""Schema registry in Penstock's API: subjects, versions, checks, look-ups, and the default compatibility level."""

import json
from typing import Any

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from dataplane.schemas.types import Compatibility
from mgmt.models import Subject
from mgmt.registry.queries import default_level, versions_of, with_figures, with_versions
from mgmt.registry.serializers import (
    DraftCheckOut,
    RegistryConfigIn,
    RegistryConfigOut,
    SchemaDraftIn,
    SchemaTextOut,
    SchemaTextPageOut,
    SubjectChangeIn,
    SubjectOut,
    SubjectPageOut,
    SubjectVersionOut,
    SubjectVersionPageOut,
    VersionChangeIn,
    draft_of,
)
from mgmt.registry.services import check_draft
from mgmt.services import (
    deprecate_subject,
    deprecate_version,
    register_version,
    restore_subject,
    restore_version,
    set_default_compatibility,
    set_owner,
    set_subject_compatibility,
)
from mgmt.web import access
from mgmt.web.api_view import View, body_of, tenant_for
from mgmt.web.openapi import LOCATION, PAGE_PARAMETERS, answers, operation
from mgmt.web.pagination import KeysetPage, NumberPage, RevisionPage, number_in, page_of, refused, text_of
from mgmt.web.parsers import UncompressedParser

_REFUSED = ("invalid", "role-too-low", "not-found", "schema-invalid", "body-too-large", "media-type")
_CHANGE_REFUSED = ("invalid", "role-too-low", "not-found", "body-too-large", "media-type")
_LOOK_UP = [
    OpenApiParameter("fingerprint", str, description="SHA-256 of the canonical form, 64 hexadecimal digits."),
    OpenApiParameter("schema_id", int, description="Id on the wire."),
]
_BY_NAME = OpenApiParameter("name", str, description="Only the subject with this name.")


class SubjectsView(View):
    """All subjects of the user's tenants."""

    parser_classes = [UncompressedParser]

    @operation(
        "list_subjects",
        parameters=[_BY_NAME, *PAGE_PARAMETERS],
        responses=answers(200, SubjectPageOut, "parameter-invalid"),
    )
    def get(self, request: Request) -> Response:
        """List the subjects of all your tenants, newest first."""
        rows = access.subjects_of(self.user)
        if name := text_of(request, "name"):
            rows = rows.filter(name=name)
        found, paginator = page_of(with_figures(rows), request, KeysetPage())
        return paginator.get_paginated_response(SubjectOut(found, many=True).data)

    @operation(
        "register_version",
        parameters=[LOCATION],
        request=SchemaDraftIn,
        responses=answers(
            (200, 201),
            SubjectVersionOut,
            *_REFUSED,
            "schema-incompatible",
            "subject-deprecated",
            "quota-exceeded",
            "limit-reached",
            "schema-conflict",
        ),
    )
    def post(self, request: Request) -> Response:
        """Register a schema as the next version of a subject, which is created if needed.

        Returns 200 and the existing version if the subject has this schema. Fails with `schema-incompatible` if the
        subject's compatibility level forbids the change: `errors` names each place, `detail` offers another subject.
        """
        body = body_of(request, SchemaDraftIn)
        tenant = tenant_for(self.user, body.get("tenant"), access.REGISTER_SCHEMA)
        version, is_new = register_version(
            tenant=tenant,
            subject=body["subject"],
            draft=draft_of(body, _text(body["schema"])),
            author=self.user,
            owner=body.get("owner", ""),
        )
        location = reverse("api:subject-version", args=[version.subject_id, version.number])
        return Response(SubjectVersionOut(version).data, status=201 if is_new else 200, headers={"Location": location})


class CheckDraftView(View):
    """Check of a schema for a subject."""

    parser_classes = [UncompressedParser]

    @operation(
        "check_schema_version",
        idempotency_key=False,
        request=SchemaDraftIn,
        responses=answers(200, DraftCheckOut, *_REFUSED),
    )
    def post(self, request: Request) -> Response:
        """Compare a schema with the versions that the subject's compatibility level names. Stores nothing."""
        body = body_of(request, SchemaDraftIn)
        tenant = tenant_for(self.user, body.get("tenant"), access.READ)
        check = check_draft(tenant=tenant, subject=body["subject"], draft=draft_of(body, _text(body["schema"])))
        found = {
            "compatible": not check.broken,
            "level": check.level,
            "fingerprint": check.found.fingerprint,
            "name": check.found.name,
            "incompatibilities": check.broken,
            "suggested_subject": check.suggested if check.broken else None,
        }
        return Response(DraftCheckOut(found).data)


class SubjectView(View):
    """One subject."""

    @operation("get_subject", responses=answers(200, SubjectOut, "not-found"))
    def get(self, _request: Request, subject: str) -> Response:
        """Return a subject."""
        return _subject(access.get_subject(self.user, subject))

    @operation("change_subject", request=SubjectChangeIn, responses=answers(200, SubjectOut, *_CHANGE_REFUSED))
    def patch(self, request: Request, subject: str) -> Response:
        """Set compatibility level, owner or deprecation of a subject. A subject cannot be deleted."""
        row = access.get_subject(self.user, subject, access.CHANGE_SUBJECT)
        body = body_of(request, SubjectChangeIn)
        if "compatibility" in body:
            level = Compatibility(body["compatibility"]) if body["compatibility"] else None
            set_subject_compatibility(tenant=row.tenant, subject=row.name, level=level, by=self.user)
        if "owner" in body:
            set_owner(subject=row, owner=body["owner"], by=self.user)
        match body.get("deprecated"):
            case True:
                deprecate_subject(subject=row, now=timezone.now(), by=self.user)
            case False:
                restore_subject(subject=row, by=self.user)
        return _subject(row)


class VersionsOfSubjectView(View):
    """Versions of a subject."""

    @operation(
        "list_subject_versions",
        parameters=PAGE_PARAMETERS,
        responses=answers(200, SubjectVersionPageOut, "parameter-invalid", "not-found"),
    )
    def get(self, request: Request, subject: str) -> Response:
        """List the versions of a subject, newest first."""
        rows = versions_of(access.get_subject(self.user, subject))
        found, paginator = page_of(rows, request, RevisionPage())
        return paginator.get_paginated_response(SubjectVersionOut(found, many=True).data)


class VersionOfSubjectView(View):
    """One version of a subject."""

    @operation("get_subject_version", responses=answers(200, SubjectVersionOut, "not-found"))
    def get(self, _request: Request, subject: str, number: int) -> Response:
        """Return a version of a subject."""
        return Response(SubjectVersionOut(access.get_subject_version(self.user, subject, number)).data)

    @operation(
        "change_subject_version",
        request=VersionChangeIn,
        responses=answers(200, SubjectVersionOut, *_CHANGE_REFUSED),
    )
    def patch(self, request: Request, subject: str, number: int) -> Response:
        """Deprecate a version, or end its deprecation. It is served, and compared with new versions, as before."""
        row = access.get_subject_version(self.user, subject, number, access.CHANGE_SUBJECT)
        if body_of(request, VersionChangeIn)["deprecated"]:
            deprecate_version(version=row, now=timezone.now(), by=self.user)
        else:
            restore_version(version=row, by=self.user)
        return Response(SubjectVersionOut(access.get_subject_version(self.user, subject, number)).data)


class SchemaTextsView(View):
    """Schemas by fingerprint or id."""

    @operation(
        "find_schemas",
        parameters=[*_LOOK_UP, *PAGE_PARAMETERS],
        responses=answers(200, SchemaTextPageOut, "parameter-invalid"),
    )
    def get(self, request: Request) -> Response:
        """Find the schemas of all your tenants by fingerprint or id, each with the versions that have it.

        Several schemas can have one fingerprint: the canonical form omits defaults and documentation.
        """
        rows = with_versions(access.schema_texts_of(self.user))
        if fingerprint := text_of(request, "fingerprint").lower():
            if len(fingerprint) != 64:
                raise refused("fingerprint", "needs 64 hexadecimal digits")
            rows = rows.filter(fingerprint=fingerprint)
        if number := number_in(request, "schema_id", 0, least=1, most=2**31 - 1):
            rows = rows.filter(number=number)
        found, paginator = page_of(rows, request, NumberPage())
        return paginator.get_paginated_response(SchemaTextOut(found, many=True).data)


class RegistryConfigView(View):
    """Default compatibility level of one tenant."""

    @operation("get_registry_config", responses=answers(200, RegistryConfigOut, "not-found"))
    def get(self, _request: Request, tenant: str) -> Response:
        """Return the compatibility level of subjects that have none of their own."""
        return Response({"compatibility": default_level(access.get_tenant(self.user, tenant).id)})

    @operation(
        "set_registry_config", request=RegistryConfigIn, responses=answers(200, RegistryConfigOut, *_CHANGE_REFUSED)
    )
    def put(self, request: Request, tenant: str) -> Response:
        """Set the compatibility level of subjects that have none of their own."""
        row = access.get_tenant(self.user, tenant, access.CHANGE_SUBJECT)
        level = Compatibility(body_of(request, RegistryConfigIn)["compatibility"])
        set_default_compatibility(tenant=row, level=level, by=self.user)
        return Response({"compatibility": level})


def _subject(row: Subject) -> Response:
    return Response(SubjectOut(with_figures(Subject.objects.filter(id=row.id)).get()).data)


def _text(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema, ensure_ascii=False)
