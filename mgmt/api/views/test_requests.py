"""Test requests of destinations."""

from typing import Any

from django.urls import reverse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from dataplane.spec import SpecError
from mgmt import access
from mgmt.api.problems import ProblemError
from mgmt.api.schema import answers, operation
from mgmt.api.test_request_shapes import DestinationTestIn, DestinationTestOut
from mgmt.api.views.base import View, body_of
from mgmt.api.views.pipes import tenant_for
from mgmt.models import DestinationTest
from mgmt.queries.dry_run import sample_body
from mgmt.services.test_requests import TEST_BODY, ask_test_of_destination, ask_test_of_draft


class DestinationTestsView(View):
    """All of them."""

    @operation(
        "create_destination_test",
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
        """Send one signed request to a destination, marked `penstock-test: 1`. Read it again for the answer."""
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
        return ask_test_of_destination(destination=destination, event=event, by=self.user, now=timezone.now())

    def _of_spec(self, body: dict[str, Any], event: bytes) -> DestinationTest:
        return ask_test_of_draft(
            tenant=tenant_for(self.user, body.get("tenant"), access.SEND_TEST),
            spec=body["spec"],
            destination=body["destination"],
            event=event,
            source=body.get("source", ""),
            by=self.user,
            now=timezone.now(),
        )


class DestinationTestView(View):
    """One of them."""

    @operation("get_destination_test", responses=answers(200, DestinationTestOut, "not-found"))
    def get(self, _request: Request, test: str) -> Response:
        """A test request; its answer is there once `state` is `done`. Kept for a day."""
        return Response(DestinationTestOut(access.get_destination_test(self.user, test)).data)
