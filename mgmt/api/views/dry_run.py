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
from mgmt.queries.dry_run import dry_run_spec


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
        ),
    )
    def post(self, request: Request) -> Response:
        """Show what a spec makes of an event: every node's output and the exact requests. Nothing is sent or kept."""
        body = body_of(request, DryRunIn)
        pipe = access.get_pipe(self.user, body["pipe"]) if body.get("pipe") else None
        try:
            result = dry_run_spec(body["spec"], body["event"], source=body.get("source", ""), pipe=pipe)
        except SpecError as exc:
            if exc.path.startswith("$"):
                raise
            raise ProblemError("invalid", errors=[_beside_the_spec(exc)]) from exc
        return Response(DryRunOut(msgspec.to_builtins(result)).data)


def _beside_the_spec(exc: SpecError) -> dict[str, Any]:
    return {"pointer": f"#/{exc.path}", "detail": exc.reason, "code": "invalid"}
