"""Dry runs of specs."""

from typing import Any

import msgspec
from rest_framework.request import Request
from rest_framework.response import Response

from dataplane.spec import SpecError
from mgmt.messages.queries.last_event import NoEventError, RecordUnavailableError, last_event
from mgmt.models import Pipe
from mgmt.pipes.dry_run_serializers import DryRunIn, DryRunOut
from mgmt.pipes.queries.dry_run import dry_run_spec, sample_body
from mgmt.web import access
from mgmt.web.api_view import View, body_of
from mgmt.web.openapi import answers, operation
from mgmt.web.problems import ProblemError


class DryRunView(View):
    """Dry run of a spec on one event."""

    @operation(
        "dry_run",
        idempotency_key=False,
        request=DryRunIn,
        responses=answers(
            200,
            DryRunOut,
            "invalid",
            "not-found",
            "body-too-large",
            "media-type",
            "spec-invalid",
            "destination-forbidden",
            "unavailable",
            "busy",
            "too-expensive",
            "too-many-at-once",
        ),
    )
    def post(self, request: Request) -> Response:
        """Run a spec on an event. Returns each node's output and the exact requests; nothing is sent or stored."""
        body = body_of(request, DryRunIn)
        pipe = access.get_pipe(self.user, body["pipe"]) if body.get("pipe") else None
        try:
            event = _event(body, pipe)
            result = dry_run_spec(
                body["spec"],
                event,
                source=body.get("source", ""),
                tenant=pipe.tenant if pipe else None,
                pipe_id=pipe.id if pipe else "",
                owner=f"user {self.user.pk}",
            )
        except SpecError as exc:
            if exc.path.startswith("$"):
                raise
            raise ProblemError("invalid", errors=[_wrong(exc.path, exc.reason)]) from exc
        shown = {"event": event.decode("utf-8", "replace"), **msgspec.to_builtins(result)}
        return Response(DryRunOut(shown).data)


def _event(body: dict[str, Any], pipe: Pipe | None) -> bytes:
    """Return the event of the body, or the pipe's newest one. Raises ProblemError."""
    if "event" in body:
        return sample_body(body["event"])
    if pipe is None:
        raise ProblemError("invalid", errors=[_wrong("event", "needs an event, or a pipe whose newest event is used")])
    try:
        return last_event(pipe).body
    except NoEventError as exc:
        raise ProblemError(
            "invalid", errors=[_wrong("event", f"needs an event: the pipe's newest event cannot be used: {exc}")]
        ) from exc
    except RecordUnavailableError as exc:
        raise ProblemError("unavailable", f"The pipe's newest event cannot be read: {exc}.") from exc


def _wrong(field: str, reason: str) -> dict[str, str]:
    return {"pointer": f"#/{field}", "detail": reason, "code": "invalid"}
