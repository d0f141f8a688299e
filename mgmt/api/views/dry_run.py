"""Dry runs."""

from typing import Any

import msgspec
from rest_framework.request import Request
from rest_framework.response import Response

from dataplane.spec import SpecError
from mgmt import access
from mgmt.api.dry_run_shapes import DryRunIn, DryRunOut
from mgmt.api.problems import ProblemError
from mgmt.api.schema import answers, operation
from mgmt.api.views.base import View, body_of
from mgmt.models import Pipe
from mgmt.queries.dry_run import dry_run_spec, sample_body
from mgmt.queries.last_event import NoEvent, RecordsAway, last_event


class DryRunView(View):
    """A spec on an event."""

    @operation(
        "dry_run",
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
        """Show what a spec makes of an event: every node's output and the exact requests. Nothing is sent or kept."""
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
    """The event that was sent, or the pipe's own last one."""
    if "event" in body:
        return sample_body(body["event"])
    if pipe is None:
        raise ProblemError("invalid", errors=[_wrong("event", "needs an event, or a pipe whose last one is taken")])
    try:
        return last_event(pipe).body
    except NoEvent as exc:
        raise ProblemError(
            "invalid", errors=[_wrong("event", f"needs an event: the pipe's own cannot be taken, {exc}")]
        ) from exc
    except RecordsAway as exc:
        raise ProblemError("unavailable", f"The pipe's last event cannot be read: {exc}.") from exc


def _wrong(field: str, reason: str) -> dict[str, str]:
    return {"pointer": f"#/{field}", "detail": reason, "code": "invalid"}
