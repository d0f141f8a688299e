"""Webhook settings of a source: read and set."""

from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.models import SourceWebhook
from mgmt.services import set_webhook
from mgmt.web import access
from mgmt.web.api_view import View, body_of
from mgmt.web.openapi import answers, operation
from mgmt.webhook_sources.serializers import WebhookIn, WebhookOut


class WebhookView(View):
    """Webhook settings of a source."""

    @operation("get_webhook", responses=answers(200, WebhookOut, "not-found"))
    def get(self, _request: Request, pipe: str, source: str) -> Response:
        """Return the webhook settings of a source. 404 if it has none."""
        row = SourceWebhook.objects.get(source=access.get_source(self.user, pipe, source))
        return Response(WebhookOut(row).data)

    @operation(
        "set_webhook",
        request=WebhookIn,
        responses=answers(
            200, WebhookOut, "invalid", "role-too-low", "not-found", "pipe-closed", "body-too-large", "media-type"
        ),
    )
    def put(self, request: Request, pipe: str, source: str) -> Response:
        """Set the sender of a source and its signing secret. Ingest applies them within seconds.

        Then create the URL for the sender with `POST .../keys/` and `"use": "url"`.
        """
        row = access.get_source(self.user, pipe, source, access.SET_WEBHOOK)
        body = body_of(request, WebhookIn)
        return Response(WebhookOut(set_webhook(source=row, by=self.user, **body)).data)
