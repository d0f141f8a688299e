"""Event catalogue: subjects with their versions, changes between versions, and the form that registers one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from dataplane.schemas.types import Compatibility, SchemaRejectedError, SchemaType
from mgmt import sandbox, services
from mgmt.event_types.queries import producers_of
from mgmt.event_types.traffic import EventTally, by_source, by_version, tallies_of_subjects, traffic_of
from mgmt.models import Subject, SubjectVersion, Tenant
from mgmt.registry.drafts import MAX_TEXT_BYTES, SchemaDraft, SchemaReference
from mgmt.registry.queries import default_level, referring_to, shown_versions, versions_of, with_figures
from mgmt.registry.services import DraftCheck, DraftIncompatibleError, check_draft
from mgmt.registry.version_views import MOST_VERSIONS, pretty, version_view
from mgmt.sandbox import SandboxRefused
from mgmt.web import access
from mgmt.web.export import KINDS, export
from mgmt.web.rendering import act_and_report, as_curl, for_members, number_of, once, selected_tenant, show, viewer_of

MOST_SUBJECTS: Final = 200
_COLUMNS: Final = ("id", "name", "schema_type", "version_count", "level", "owner", "created_at", "deprecated_at")
_IDL: Final = (".avdl", ".avpr")
EXAMPLE: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Order",
    "namespace": "com.shop",
    "fields": [
        {"name": "id", "type": "string", "doc": "Number of the order."},
        {"name": "total", "type": "double"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}


@dataclass(frozen=True)
class RegisterForm:
    """Fields of the form that registers a version, as the user typed them.

    references: one a line: name, subject and version
    """

    subject: str = ""
    type: str = SchemaType.AVRO.value
    schema: str = ""
    references: str = ""


@dataclass(frozen=True)
class RegisterResult:
    """Result of a check or of a refused registration. `at`: JSON pointer of the error.

    types: names of the types of an uploaded file, of which the user chooses one
    """

    error: str = ""
    at: str = ""
    check: DraftCheck | None = None
    types: tuple[str, ...] = ()


@for_members
@require_http_methods(["GET", "HEAD"])
def subjects(request: HttpRequest) -> HttpResponseBase:
    """List the tenant's subjects; `q` selects those whose name contains it, `format` exports them."""
    tenant = selected_tenant(request)
    wanted = request.GET.get("q", "").strip().replace("\x00", "")
    rows = with_figures(Subject.objects.filter(tenant=tenant, name__icontains=wanted)).order_by("name")
    if (kind := request.GET.get("format", "")) in KINDS:
        return export(kind, rows.values(*_COLUMNS), _COLUMNS, name="schemas")
    found = list(rows[: MOST_SUBJECTS + 1])
    tallies = tallies_of_subjects(tenant.id, timezone.now())
    context = {
        "rows": [(one, tallies.get(one.id, EventTally())) for one in found[:MOST_SUBJECTS]],
        "has_more": len(found) > MOST_SUBJECTS,
        "wanted": wanted,
        "default_level": default_level(tenant.id),
        "levels": list(Compatibility),
        "registry_url": f"{settings.PENSTOCK_WEB_URL}/registry",
        "example": pretty(EXAMPLE),
        "curl": as_curl("schemas/"),
    }
    return show(request, "registry/subjects.html", context, tenant=tenant)


@for_members
@require_POST
def set_default_level(request: HttpRequest) -> HttpResponse:
    """Set the compatibility level of subjects that have none of their own."""
    tenant = access.get_tenant(viewer_of(request), selected_tenant(request).id, access.CHANGE_SUBJECT)
    level = _level(request)
    if level is not None:
        services.set_default_compatibility(tenant=tenant, level=level, by=viewer_of(request))
        messages.success(request, f"Subjects without a level of their own now have {level}.", "fine")
    return redirect("console:subjects")


@for_members
@require_http_methods(["GET", "POST"])
def register(request: HttpRequest) -> HttpResponse:
    """Check or register a version; an uploaded file fills the form. GET with `subject` begins with its newest one."""
    tenant = access.get_tenant(viewer_of(request), selected_tenant(request).id, access.REGISTER_SCHEMA)
    if request.method != "POST":
        return _form(request, tenant, _prefilled(tenant, request.GET.get("subject", "")))
    form = RegisterForm(
        subject=(request.POST.get("as") or request.POST.get("subject", "")).strip(),
        type=request.POST.get("type", ""),
        schema=request.POST.get("schema", ""),
        references=request.POST.get("references", ""),
    )
    try:
        form, types = _with_file(request, tenant, form)
        if types:
            return _form(request, tenant, form, RegisterResult(types=types))
        return _submitted(request, tenant, form)
    except SchemaRejectedError as exc:
        result, status = RegisterResult(exc.reason, exc.path), 422
    except services.InvalidValue as exc:
        result, status = RegisterResult(exc.reason, exc.field), 422
    except SandboxRefused as exc:
        result, status = RegisterResult(str(exc)), 503
    except services.ServiceError as exc:
        result, status = RegisterResult(str(exc)), 409
    return _form(request, tenant, form, result, status=status)


@for_members
@require_http_methods(["GET", "HEAD"])
def subject(request: HttpRequest, subject_id: str) -> HttpResponse:
    """Show a subject: the fields of one version (`version`), all versions, and the changes since another (`since`)."""
    row = access.get_subject(viewer_of(request), subject_id)
    wanted = [number_of(request.GET.get(name)) for name in ("version", "since")]
    versions = shown_versions(row, MOST_VERSIONS, *wanted)
    view = version_view(versions, *wanted)
    traffic = traffic_of(row, timezone.now())
    of_version, of_source = by_version(traffic), by_source(traffic)
    context = view | {
        "subject": with_figures(Subject.objects.filter(id=row.id)).get(),
        "versions": versions,
        "version_rows": [(one, of_version.get(one.number, EventTally())) for one in versions],
        "get_referring": once(partial(_referring, view["shown"])),
        "producers": [(one, of_source.get(one.source.pk, EventTally())) for one in producers_of(row)],
        "levels": list(Compatibility),
        "curl": as_curl(f"schemas/{row.id}/versions/"),
    }
    return show(request, "registry/subject.html", context, tenant=row.tenant)


@for_members
@require_POST
def change_subject(request: HttpRequest, subject_id: str) -> HttpResponse:
    """Set level and owner of a subject, or deprecate or restore it or one of its versions."""
    row = access.get_subject(viewer_of(request), subject_id, access.CHANGE_SUBJECT)
    now, number = timezone.now(), number_of(request.POST.get("version"))
    version = row.versions.get(number=number) if number else None
    match request.POST.get("action"):
        case "deprecate" if version:
            services.deprecate_version(version=version, now=now, by=viewer_of(request))
            messages.success(request, f"Version {number} is marked as deprecated. It is served as before.", "fine")
        case "restore" if version:
            services.restore_version(version=version, by=viewer_of(request))
            messages.success(request, f"Version {number} is no longer deprecated.", "fine")
        case "deprecate":
            services.deprecate_subject(subject=row, now=now, by=viewer_of(request))
            messages.success(request, f"{row.name} is deprecated and accepts no new version.", "fine")
        case "restore":
            services.restore_subject(subject=row, by=viewer_of(request))
            messages.success(request, f"{row.name} accepts new versions again.", "fine")
        case _:
            act_and_report(request, partial(_save, request, row), "Saved.")
    return redirect("console:subject", row.id)


def _save(request: HttpRequest, row: Subject) -> None:
    services.set_owner(subject=row, owner=request.POST.get("owner", ""), by=viewer_of(request))
    services.set_subject_compatibility(
        tenant=row.tenant, subject=row.name, level=_level(request), by=viewer_of(request)
    )


def _submitted(request: HttpRequest, tenant: Tenant, form: RegisterForm) -> HttpResponse:
    """Check or register the schema of the form. Raises SchemaRejectedError, InvalidValue, ServiceError."""
    draft, author = _draft(form), viewer_of(request)
    try:
        if request.POST.get("action") == "check":
            check = check_draft(tenant=tenant, subject=form.subject, draft=draft)
            return _form(request, tenant, form, RegisterResult(check=check), status=409 if check.broken else 200)
        version, is_new = services.register_version(tenant=tenant, subject=form.subject, draft=draft, author=author)
    except DraftIncompatibleError as exc:
        return _form(request, tenant, form, RegisterResult(check=exc.check), status=409)
    if is_new:
        words = f"Version {version.number} of {form.subject} registered, with the id {version.schema.number}."
        messages.success(request, words, "fine")
    else:
        messages.info(request, f"Equal to version {version.number}. Nothing was registered.", "fine")
    return redirect("console:subject", version.subject_id)


def _form(
    request: HttpRequest,
    tenant: Tenant,
    form: RegisterForm,
    result: RegisterResult | None = None,
    status: int = 200,
) -> HttpResponse:
    body = {"subject": form.subject or "orders-value", "schema": EXAMPLE}
    context = {
        "form": form,
        "result": result,
        "types": list(SchemaType),
        "max_kib": MAX_TEXT_BYTES // 1024,
        "curl": as_curl("schemas/", body),
    }
    return show(request, "registry/register.html", context, tenant=tenant, status=status)


def _prefilled(tenant: Tenant, subject_id: str) -> RegisterForm:
    row = Subject.objects.filter(tenant=tenant, id=subject_id.replace("\x00", "")).first()
    newest = versions_of(row).first() if row else None
    if row is None or newest is None:
        return RegisterForm(subject=row.name if row else "", schema=pretty(EXAMPLE))
    schema = newest.schema
    lines = [f"{one['name']} {one['subject']} {one['version']}" for one in schema.references]
    return RegisterForm(row.name, schema.type, pretty(schema.parsed), "\n".join(lines))


def _with_file(request: HttpRequest, tenant: Tenant, form: RegisterForm) -> tuple[RegisterForm, tuple[str, ...]]:
    """Return the form with the schema of the uploaded file, and the names of its types if there are several.

    Raises SchemaRejectedError.
    """
    file = request.FILES.get("file")
    if isinstance(file, UploadedFile):
        form = replace(form, schema=_file_text(file))
        is_idl = str(file.name).lower().endswith(_IDL)
    else:
        is_idl = bool(request.POST.get("pick"))
    if not is_idl:
        return form, ()
    types = dict(sandbox.types_in(form.schema, owner=tenant.id))
    chosen = request.POST.get("pick") or (next(iter(types)) if len(types) == 1 else "")
    if chosen not in types:
        return form, tuple(types)
    text = pretty(json.loads(types[chosen]))
    return replace(form, type=SchemaType.AVRO.value, schema=text, subject=form.subject or chosen), ()


def _file_text(file: "UploadedFile[Any]") -> str:
    if (file.size or 0) > MAX_TEXT_BYTES:
        raise SchemaRejectedError("", f"needs a file of at most {MAX_TEXT_BYTES // 1024} KiB")
    try:
        text: str = file.read().decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise SchemaRejectedError("", "needs a file in UTF-8") from exc
    return text


def _draft(form: RegisterForm) -> SchemaDraft:
    if form.type not in list(SchemaType):
        raise SchemaRejectedError("", "needs the type AVRO or JSON")
    references = []
    for number, line in enumerate(filter(None, map(str.strip, form.references.splitlines()))):
        parts = line.split()
        if len(parts) != 3 or not (parts[2] == "latest" or number_of(parts[2])):
            raise SchemaRejectedError(f"/references/{number}", "needs name, subject and version, divided by spaces")
        version = -1 if parts[2] == "latest" else number_of(parts[2])
        references.append(SchemaReference(parts[0], parts[1], min(version, 2**31 - 1)))
    return SchemaDraft(SchemaType(form.type), form.schema, tuple(references))


def _level(request: HttpRequest) -> Compatibility | None:
    text = request.POST.get("level", "")
    return Compatibility(text) if text in list(Compatibility) else None


def _referring(shown: SubjectVersion | None) -> list[Mapping[str, Any]]:
    """Return id, name and a subject of the schemas that refer to a version."""
    if shown is None:
        return []
    named = referring_to(shown).values_list("versions__subject__name", "versions__subject_id")
    return [{"name": name, "url": reverse("console:subject", args=[id_])} for name, id_ in sorted(set(named))]
