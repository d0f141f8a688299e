"""Schema of a source: versions, and test and registration of the next one."""

import json
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from dataplane.spec.compatible import BreakingChange
from dataplane.spec.schema import SchemaError, pointer_of, read_schema
from mgmt import services
from mgmt.event_types.queries import event_types_of
from mgmt.models import Source
from mgmt.pipes.page_context import pipe_context
from mgmt.sandbox import SandboxRefused
from mgmt.schemas.queries import SchemaTrial, newest_event_by, schemas_of
from mgmt.schemas.services import checked_next, is_read
from mgmt.web import access
from mgmt.web.rendering import as_curl, for_members, show, viewer_of

SHOWN: Final = 20  # the API lists them all
EXAMPLE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "amount": {"type": "number", "minimum": 0}},
    "required": ["id"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class SchemaFormResult:
    """Result of testing or registering a schema.

    at:    the JSON pointer of the error in `error`
    ready: the schema could be registered
    """

    error: str = ""
    at: str = ""
    broken: tuple[BreakingChange, ...] = ()
    tried: SchemaTrial | None = None
    ready: bool = False


@for_members
@require_http_methods(["GET", "POST"])
def schema(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """List the versions of a source's schema; a POST tests or registers the next one."""
    if request.method != "POST":
        return _page(request, access.get_source(viewer_of(request), pipe_id, name))
    source = access.get_source(viewer_of(request), pipe_id, name, access.REGISTER_SCHEMA)
    typed = request.POST.get("schema", "")
    try:
        document = read_schema(typed)
        if request.POST.get("action") == "try":
            checked_next(source=source, document=document)
            return _page(request, source, typed, SchemaFormResult(tried=newest_event_by(source, document), ready=True))
        return _registered(request, source, document)
    except SchemaError as exc:
        return _page(request, source, typed, SchemaFormResult(exc.reason, pointer_of(exc.path)), status=422)
    except services.SchemaIncompatibleError as exc:
        tried = newest_event_by(source, document)
        return _page(request, source, typed, SchemaFormResult(broken=tuple(exc.broken), tried=tried), status=409)
    except (services.ServiceError, SandboxRefused) as exc:
        status = 503 if isinstance(exc, SandboxRefused) else 409
        return _page(request, source, typed, SchemaFormResult(str(exc)), status=status)


def _registered(request: HttpRequest, source: Source, document: Any) -> HttpResponse:
    made, is_new = services.register_schema(source=source, document=document, author=viewer_of(request))
    if is_new:
        messages.success(request, f"Version {made.number} registered. Ingest applies it within seconds.", "fine")
    else:
        messages.info(request, f"Identical to version {made.number}. Nothing was registered.", "fine")
    tried = newest_event_by(source, document)
    if tried is not None and tried.misfit is not None:
        messages.warning(request, str(tried), "wait")
    return redirect("console:schema", source.pipe_id, source.name)


def _page(
    request: HttpRequest, source: Source, typed: str = "", outcome: SchemaFormResult | None = None, status: int = 200
) -> HttpResponse:
    versions = list(schemas_of(source)[:SHOWN])
    newest = versions[0].document if versions else None
    path = f"pipes/{source.pipe_id}/sources/{source.name}/schemas/"
    context = pipe_context(source.pipe, "settings") | {
        "source": source,
        "event_types": list(event_types_of(source)),
        "versions": [(one, _pretty(one.document)) for one in versions],
        "typed": typed or _pretty(newest if versions else EXAMPLE),
        "outcome": outcome,
        "is_read": is_read(source),
        "curl": as_curl(path, {"schema": newest if versions else EXAMPLE}),
    }
    return show(request, "schemas/schema.html", context, tenant=source.pipe.tenant, status=status)


def _pretty(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)
