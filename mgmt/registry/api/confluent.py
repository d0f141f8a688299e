"""Wire API of Confluent's Schema Registry, for stock clients: `/registry/`, or `/registry/{tenant}/` to name a tenant.

Errors have the form `{"error_code": ..., "message": ...}`. Query parameters that are not known are ignored, because
clients send those of later releases.
"""

from collections.abc import Iterable
from typing import Any, ClassVar, cast

from django.core.exceptions import ObjectDoesNotExist
from django.db import InterfaceError, OperationalError
from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from dataplane.schemas.types import Compatibility, SchemaRejectedError, SchemaType
from mgmt.ids import storable
from mgmt.models import SchemaText, Subject, SubjectVersion, Tenant, User
from mgmt.registry.drafts import SchemaDraft
from mgmt.registry.queries import (
    LATEST,
    default_level,
    find_version,
    highest_id,
    referring_to,
    subject_names,
    versions_of,
    versions_with,
)
from mgmt.registry.services import DraftCheck, check_draft, find_draft
from mgmt.registry.wire import (
    MAX_NUMBER,
    MEDIA_TYPES,
    WireError,
    draft_in,
    incompatible,
    is_true,
    level_in,
    level_not_set,
    never_deleted,
    number_of_version,
    schema_not_found,
    schema_out,
    subject_not_found,
    verbose_messages,
    version_not_found,
    version_out,
)
from mgmt.sandbox import SandboxRefused
from mgmt.services import (
    InvalidValue,
    ServiceError,
    VersionIncompatibleError,
    register_version,
    set_default_compatibility,
    set_subject_compatibility,
)
from mgmt.web import access
from mgmt.web.api_view import tenant_for
from mgmt.web.pagination import text_of
from mgmt.web.parsers import UncompressedParser
from mgmt.web.problems import ProblemError

READ_WRITE = "READWRITE"


class WireRenderer(JSONRenderer):
    """Renderer of the wire API's own media type."""

    media_type = MEDIA_TYPES[0]
    format = None  # type: ignore[assignment]  # a query parameter `format` means something else to these clients


class WireNegotiation(BaseContentNegotiation):
    """Negotiation that never refuses: the first of the known media types that the client names, else the first."""

    def select_parser(self, request: Request, parsers: list[BaseParser]) -> BaseParser | None:  # type: ignore[override]
        """Return the JSON parser for a body of a known type; None, which gives 415, for any other."""
        kind = (request.content_type or "").partition(";")[0].strip().lower()
        return parsers[0] if kind in (*MEDIA_TYPES, "application/octet-stream") else None

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], _format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Return the renderer and the media type of the response."""
        accepted = request.headers.get("Accept", "")
        asked = [part.partition(";")[0].strip().lower() for part in accepted.split(",")]
        renderer = next(iter(renderers))  # made for this request
        renderer.media_type = next((kind for kind in asked if kind in MEDIA_TYPES), MEDIA_TYPES[0])
        return renderer, renderer.media_type


class RegistryView(APIView):
    """View of the wire API: a tenant, and errors in Confluent's form."""

    content_negotiation_class = WireNegotiation
    renderer_classes = [WireRenderer]
    parser_classes = [UncompressedParser]
    schema = None  # not in the OpenAPI document, which describes /api/v1/
    need: ClassVar[dict[str, str]] = {}  # required role by method; READ for others

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Find the tenant: the one in the path, or the user's only one."""
        super().initial(request, *args, **kwargs)
        need = self.need.get(str(request.method), access.READ)
        try:
            self.tenant: Tenant = tenant_for(self.user, kwargs.get("tenant"), need)
        except ProblemError as exc:
            raise WireError(400, "Name one of your tenants in the URL: /registry/{id of the tenant}/.") from exc

    def get_exception_handler(self) -> Any:
        """Return the handler that responds in Confluent's form."""
        return wire_response

    @property
    def user(self) -> User:
        """The signed-in user; the permission class refuses anyone else."""
        return cast("User", self.request.user)

    def subject_named(self, name: str) -> Subject:
        """Return a subject that has a version. Raises WireError 40401."""
        found = Subject.objects.filter(tenant=self.tenant, name=storable(name), versions__number=1).first()
        if found is None:
            raise subject_not_found(name)
        return found

    def version_named(self, name: str, version: str) -> SubjectVersion:
        """Return a version by number or `latest`. Raises WireError 42202, 40401, 40402."""
        number, subject = number_of_version(version), self.subject_named(name)
        try:
            return find_version(self.tenant.id, subject.name, number)
        except SubjectVersion.DoesNotExist:
            raise version_not_found(number) from None

    def schema_with(self, number: int) -> SchemaText:
        """Return a schema by its id. Raises WireError 40403."""
        found = SchemaText.objects.filter(tenant=self.tenant, number=min(number, MAX_NUMBER)).first()
        if found is None:
            raise schema_not_found(number)
        return found


def wire_response(exc: Exception, _context: Any) -> Response | None:
    """Convert every expected exception to a response in Confluent's form; None for bugs."""
    headers: dict[str, str] = {}
    match exc:
        case WireError():
            code, message = exc.error_code, str(exc.detail)
        case SchemaRejectedError():
            code, message = 42201, f"Invalid schema: {exc}"
        case access.Forbidden():
            code, message = 40301, str(exc)
        case InvalidValue():
            code, message = (42208 if exc.field == "subject" else 422), str(exc)
        case ServiceError():
            code, message = 42205, str(exc)
        case SandboxRefused():
            code, message, headers = 503, str(exc), {"Retry-After": "2"}
        case OperationalError() | InterfaceError():
            code, message, headers = 50001, "Error in the backend data store. Try again.", {"Retry-After": "5"}
        case ObjectDoesNotExist():
            code, message = 404, "Not found"
        case exceptions.APIException():
            code, message = exc.status_code, str(exc.detail)
            headers = _headers_of(exc)
        case _:
            return None
    return Response({"error_code": code, "message": message}, status=int(str(code)[:3]), headers=headers)


def _headers_of(exc: exceptions.APIException) -> dict[str, str]:
    found = {}
    if (scheme := getattr(exc, "auth_header", None)) is not None:
        found["WWW-Authenticate"] = str(scheme)
    if (wait_s := getattr(exc, "wait", None)) is not None:
        found["Retry-After"] = str(int(wait_s))
    return found


class RootView(RegistryView):
    """Root of the wire API, which clients and tools request to see whether it is up."""

    def get(self, _request: Request, **_path: str) -> Response:
        """Return an empty object."""
        return Response({})


class SubjectNamesView(RegistryView):
    """Names of all subjects."""

    def get(self, request: Request, **_path: str) -> Response:
        """Return the names of the subjects that have a version."""
        names = subject_names(self.tenant.id, text_of(request, "subjectPrefix"))
        return Response(_slice(names, request))


class SubjectLookUpView(RegistryView):
    """Look-up of a schema in a subject."""

    def post(self, request: Request, subject: str, **_path: str) -> Response:
        """Return the version that has the schema of the body. Deprecated versions are found, too."""
        draft, row = draft_in(request.data), self.subject_named(subject)
        found = find_draft(tenant=self.tenant, subject=row.name, draft=draft)
        if found is None:
            raise schema_not_found()
        return Response(version_out(found))

    def delete(self, _request: Request, subject: str, **_path: str) -> Response:
        """Refuse: nothing is deleted."""
        raise never_deleted(f"Subject '{self.subject_named(subject).name}'")


class SubjectVersionsView(RegistryView):
    """Versions of a subject."""

    need: ClassVar[dict[str, str]] = {"POST": access.REGISTER_SCHEMA}

    def get(self, request: Request, subject: str, **_path: str) -> Response:
        """Return the numbers of a subject's versions."""
        numbers = versions_of(self.subject_named(subject)).order_by("number").values_list("number", flat=True)
        return Response(_slice(list(numbers), request))

    def post(self, request: Request, subject: str, **_path: str) -> Response:
        """Register a schema and return its id; the id of the equal version if there is one."""
        draft = draft_in(request.data)
        try:
            version, _ = register_version(tenant=self.tenant, subject=subject, draft=draft, author=self.user)
        except VersionIncompatibleError as exc:
            raise incompatible(subject, exc.broken, exc.suggested) from exc
        return Response({"id": version.schema.number})


class WireVersionView(RegistryView):
    """One version of a subject."""

    def get(self, _request: Request, subject: str, version: str, **_path: str) -> Response:
        """Return a version by number or `latest`."""
        return Response(version_out(self.version_named(subject, version)))

    def delete(self, _request: Request, subject: str, version: str, **_path: str) -> Response:
        """Refuse: nothing is deleted."""
        found = self.version_named(subject, version)
        raise never_deleted(f"Version {found.number} of subject '{found.subject.name}'")


class VersionSchemaView(RegistryView):
    """Text of one version's schema."""

    def get(self, request: Request, subject: str, version: str, **_path: str) -> HttpResponse:
        """Return the schema alone, not as a JSON string."""
        return _raw(request, self.version_named(subject, version).schema)


class ReferencedByView(RegistryView):
    """Schemas that refer to one version."""

    def get(self, request: Request, subject: str, version: str, **_path: str) -> Response:
        """Return the ids of the schemas that refer to a version."""
        rows = referring_to(self.version_named(subject, version)).values_list("number", flat=True)
        return Response(_slice(list(rows), request))


class SchemaIdView(RegistryView):
    """Schema by its id."""

    def get(self, request: Request, number: int, **_path: str) -> Response:
        """Return a schema, which is how deserializers read it; with `fetchMaxId` also the highest id."""
        found = schema_out(self.schema_with(number))
        if is_true(request.query_params.get("fetchMaxId")):
            found["maxId"] = highest_id(self.tenant.id)
        return Response(found)


class SchemaIdTextView(RegistryView):
    """Text of a schema by its id."""

    def get(self, request: Request, number: int, **_path: str) -> HttpResponse:
        """Return the schema alone, not as a JSON string."""
        return _raw(request, self.schema_with(number))


class SchemaIdVersionsView(RegistryView):
    """Versions that have a schema."""

    def get(self, request: Request, number: int, **_path: str) -> Response:
        """Return subject and number of each version that has a schema."""
        pairs = versions_with(self.schema_with(number))
        return Response(_slice([{"subject": name, "version": version} for name, version in pairs], request))


class SchemaIdSubjectsView(RegistryView):
    """Subjects that have a schema."""

    def get(self, request: Request, number: int, **_path: str) -> Response:
        """Return the names of the subjects that have a schema."""
        return Response(_slice([name for name, _ in versions_with(self.schema_with(number))], request))


class SchemaTypesView(RegistryView):
    """Types of schemas."""

    def get(self, _request: Request, **_path: str) -> Response:
        """Return the types that can be registered."""
        return Response(list(SchemaType))


class DefaultConfigView(RegistryView):
    """Default compatibility level of the tenant."""

    need: ClassVar[dict[str, str]] = dict.fromkeys(("PUT", "DELETE"), access.CHANGE_SUBJECT)

    def get(self, _request: Request, **_path: str) -> Response:
        """Return the default level."""
        return Response({"compatibilityLevel": default_level(self.tenant.id)})

    def put(self, request: Request, **_path: str) -> Response:
        """Set the default level."""
        level = level_in(_object(request))
        set_default_compatibility(tenant=self.tenant, level=level, by=self.user)
        return Response({"compatibility": level})

    def delete(self, _request: Request, **_path: str) -> Response:
        """Reset the default level to BACKWARD and return the former one."""
        former = default_level(self.tenant.id)
        set_default_compatibility(tenant=self.tenant, level=Compatibility.BACKWARD, by=self.user)
        return Response({"compatibilityLevel": former})


class SubjectConfigView(RegistryView):
    """Compatibility level of one subject."""

    need: ClassVar[dict[str, str]] = dict.fromkeys(("PUT", "DELETE"), access.CHANGE_SUBJECT)

    def get(self, request: Request, subject: str, **_path: str) -> Response:
        """Return the subject's own level; with `defaultToGlobal`, the one that applies."""
        row = Subject.objects.filter(tenant=self.tenant, name=storable(subject)).first()
        if row is not None and row.compatibility:
            return Response({"compatibilityLevel": row.compatibility})
        if is_true(request.query_params.get("defaultToGlobal")):
            return Response({"compatibilityLevel": default_level(self.tenant.id)})
        raise level_not_set(subject)

    def put(self, request: Request, subject: str, **_path: str) -> Response:
        """Set the level of a subject, which needs no version yet."""
        level = level_in(_object(request))
        set_subject_compatibility(tenant=self.tenant, subject=subject, level=level, by=self.user)
        return Response({"compatibility": level})

    def delete(self, _request: Request, subject: str, **_path: str) -> Response:
        """Let the default level apply and return the subject's former one."""
        row = Subject.objects.filter(tenant=self.tenant, name=storable(subject)).first()
        if row is None or not row.compatibility:
            raise subject_not_found(subject)
        set_subject_compatibility(tenant=self.tenant, subject=row.name, level=None, by=self.user)
        return Response({"compatibilityLevel": row.compatibility})


class CompatibilityView(RegistryView):
    """Check of a schema against one version, or against those that the subject's level names."""

    def post(self, request: Request, subject: str, version: str = "", **_path: str) -> Response:
        """Return whether the schema is compatible; with `verbose`, each place, reader, writer and reason.

        A subject without versions accepts every schema, as in Confluent's registry.
        """
        draft = draft_in(request.data)
        found = self._check(subject, version, draft)
        body: dict[str, Any] = {"is_compatible": not found.broken}
        if is_true(request.query_params.get("verbose")):
            numbers = {one.version for one in found.broken if one.version}
            rows = SubjectVersion.objects.filter(subject__tenant=self.tenant, subject__name=subject, number__in=numbers)
            texts = dict(rows.values_list("number", "schema__text"))
            body["messages"] = verbose_messages(found.broken, texts, found.level)
        return Response(body)

    def _check(self, subject: str, version: str, draft: SchemaDraft) -> DraftCheck:
        against = None
        if version:
            try:
                against = self.version_named(subject, version)
            except WireError:
                if number_of_version(version) != LATEST:
                    raise
        return check_draft(tenant=self.tenant, subject=subject, draft=draft, against=against)


class ModeView(RegistryView):
    """Mode of the registry, which is always READWRITE."""

    need: ClassVar[dict[str, str]] = dict.fromkeys(("PUT", "DELETE"), access.CHANGE_SUBJECT)

    def get(self, request: Request, subject: str = "", **_path: str) -> Response:
        """Return the mode. A subject has none of its own."""
        if subject and not is_true(request.query_params.get("defaultToGlobal")):
            raise WireError(40409, f"Subject '{subject}' does not have subject-level mode configured")
        return Response({"mode": READ_WRITE})

    def put(self, request: Request, subject: str = "", **_path: str) -> Response:
        """Accept READWRITE; refuse other modes."""
        asked = str(_object(request).get("mode", "")).upper()
        if asked != READ_WRITE:
            raise WireError(42205, f"{subject or 'The registry'} has the mode {READ_WRITE}, the only one available.")
        return Response({"mode": READ_WRITE})


def _object(request: Request) -> dict[str, Any]:
    body: Any = request.data
    if not isinstance(body, dict):
        raise WireError(422, "The request body must be a JSON object")
    return body


def _raw(request: Request, schema: SchemaText) -> HttpResponse:
    return HttpResponse(schema.text, content_type=request.accepted_media_type)


def _slice(rows: list[Any], request: Request) -> list[Any]:
    """Return the rows that `offset` and `limit` name; limit -1 means all."""
    offset, limit = (_whole(request.query_params.get(name)) for name in ("offset", "limit"))
    return rows[offset : offset + limit] if limit else rows[offset:]


def _whole(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0
