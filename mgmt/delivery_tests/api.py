"""Test requests of destinations."""

from typing import Any

from django.urls import reverse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from dataplane.spec import SpecError
from mgmt.delivery_tests.serializers import DestinationTestIn, DestinationTestOut
from mgmt.delivery_tests.services import TEST_BODY, request_destination_test, request_draft_test
from mgmt.models import DestinationTest
from mgmt.pipes.queries.dry_run import sample_body
from mgmt.web import access
from mgmt.web.api_view import View, body_of, tenant_for
from mgmt.web.openapi import LOCATION, answers, operation
from mgmt.web.problems import ProblemError


class DestinationTestsView(View):
    """All test requests."""

    @operation(
        "create_destination_test",
        parameters=[LOCATION],
        request=DestinationTestIn,
        responses=answers(
            202,
            DestinationTestOut,
            "invalid",
            "role-too-low",
            "not-found",
            "nothing-to-send",
            "destination-removed",
            "body-too-large",
            "media-type",
            "spec-invalid",
            "destination-forbidden",
            "too-many-tests",
        ),
    )
    def post(self, request: Request) -> Response:
        """Send a signed test request, with the header `penstock-test: 1`, to a destination. Poll it for the result."""
        body = body_of(request, DestinationTestIn)
        try:
            event = sample_body(body["event"]) if "event" in body else TEST_BODY.encode()
            row = self._of_pipe(body, event) if "pipe" in body else self._of_spec(body, event)
        except SpecError as exc:
            if exc.path.startswith("$"):
                raise
            wrong = {"pointer": f"#/{exc.path}", "detail": exc.reason, "code": "invalid"}
            raise ProblemError("invalid", errors=[wrong]) from exc
        location = reverse("api:destination-test", args=[row.id])
        return Response(DestinationTestOut(row).data, status=202, headers={"Location": location})

    def _of_pipe(self, body: dict[str, Any], event: bytes) -> DestinationTest:
        destination = access.get_destination(self.user, body["pipe"], body["destination"], access.SEND_TEST)
        return request_destination_test(destination=destination, event=event, by=self.user, now=timezone.now())

    def _of_spec(self, body: dict[str, Any], event: bytes) -> DestinationTest:
        return request_draft_test(
            tenant=tenant_for(self.user, body.get("tenant"), access.SEND_TEST),
            spec=body["spec"],
            destination=body["destination"],
            event=event,
            source=body.get("source", ""),
            by=self.user,
            now=timezone.now(),
        )


class DestinationTestView(View):
    """One test request."""

    @operation("get_destination_test", responses=answers(200, DestinationTestOut, "not-found"))
    def get(self, _request: Request, test: str) -> Response:
        """Return a test request. The result is available once `state` is `done`, and kept for a day."""
        return Response(DestinationTestOut(access.get_destination_test(self.user, test)).data)
