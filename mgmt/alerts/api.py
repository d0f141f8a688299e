"""Alerts and notification channels."""

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.alerts.queries.alerts import alerts_of
from mgmt.deliveries.serializers import AlertOut, AlertPageOut, ChannelIn, ChannelOut, NewChannelOut, SnoozeIn
from mgmt.models import Alert
from mgmt.services import (
    acknowledge_alert,
    add_alert_channel,
    ask_for_confirmation,
    probe_alert,
    remove_alert_channel,
    request_channel_test,
    resolve_alert,
    snooze_alert,
)
from mgmt.web import access
from mgmt.web.api_view import View, body_of
from mgmt.web.openapi import PAGE_PARAMETERS, answers, operation
from mgmt.web.pagination import KeysetPage, page_of, refused

STATE = OpenApiParameter("state", str, enum=Alert.State.values, description="Only alerts in this state.")


class AlertsView(View):
    """Alerts of all the user's tenants."""

    @operation(
        "list_alerts", parameters=[STATE, *PAGE_PARAMETERS], responses=answers(200, AlertPageOut, "parameter-invalid")
    )
    def get(self, request: Request) -> Response:
        """List the alerts of all your pipes, newest first."""
        return _page(request, [pipe.id for pipe in access.pipes_of(self.user)])


class PipeAlertsView(View):
    """Alerts of one pipe."""

    @operation(
        "list_alerts_of_pipe",
        parameters=[STATE, *PAGE_PARAMETERS],
        responses=answers(200, AlertPageOut, "parameter-invalid", "not-found"),
    )
    def get(self, request: Request, pipe: str) -> Response:
        """List a pipe's alerts, newest first."""
        return _page(request, [access.get_pipe(self.user, pipe).id])


class AlertView(View):
    """One alert."""

    @operation("get_alert", responses=answers(200, AlertOut, "not-found"))
    def get(self, _request: Request, pipe: str, alert: str) -> Response:
        """Return an alert with a sample failure."""
        return Response(AlertOut(access.get_alert(self.user, pipe, alert)).data)


class AcknowledgeAlertView(View):
    """Acknowledgement of an alert."""

    @operation(
        "acknowledge_alert",
        request=None,
        responses=answers(200, AlertOut, "role-too-low", "not-found", "alert-not-open"),
    )
    def post(self, _request: Request, pipe: str, alert: str) -> Response:
        """Acknowledge an alert: record that you are working on it."""
        row = access.get_alert(self.user, pipe, alert, access.HANDLE_ALERT)
        acknowledge_alert(alert=row, by=self.user, now=timezone.now())
        return Response(AlertOut(row).data)


class SnoozeAlertView(View):
    """Snooze of an alert."""

    @operation(
        "snooze_alert",
        request=SnoozeIn,
        responses=answers(
            200, AlertOut, "invalid", "role-too-low", "not-found", "alert-not-open", "body-too-large", "media-type"
        ),
    )
    def post(self, request: Request, pipe: str, alert: str) -> Response:
        """Snooze an alert until a given time. Then it is opened again and sent to the channels."""
        row = access.get_alert(self.user, pipe, alert, access.HANDLE_ALERT)
        snooze_alert(alert=row, until=body_of(request, SnoozeIn)["until"], now=timezone.now(), by=self.user)
        return Response(AlertOut(row).data)


class ResolveAlertView(View):
    """Resolution of an alert."""

    @operation("resolve_alert", request=None, responses=answers(200, AlertOut, "role-too-low", "not-found"))
    def post(self, _request: Request, pipe: str, alert: str) -> Response:
        """Mark an alert as resolved. A new failure opens a new alert."""
        row = access.get_alert(self.user, pipe, alert, access.HANDLE_ALERT)
        resolve_alert(alert=row, by=self.user, now=timezone.now())
        return Response(AlertOut(row).data)


class ProbeAlertView(View):
    """Probe of an alert's destination."""

    @operation(
        "probe_alert",
        request=None,
        responses=answers(200, AlertOut, "role-too-low", "not-found", "alert-not-open", "nothing-to-probe"),
    )
    def post(self, _request: Request, pipe: str, alert: str) -> Response:
        """Send one real message. If the destination accepts it, Penstock resumes it and sends the held messages."""
        row = access.get_alert(self.user, pipe, alert, access.HANDLE_ALERT)
        probe_alert(alert=row, by=self.user, now=timezone.now())
        return Response(AlertOut(row).data)


class ChannelsView(View):
    """Notification channels of a tenant. There are at most 20, and so no pages."""

    @operation("list_alert_channels", responses=answers(200, ChannelOut(many=True), "not-found"))
    def get(self, _request: Request, tenant: str) -> Response:
        """List a tenant's notification channels, oldest first."""
        rows = access.get_tenant(self.user, tenant).alert_channels.order_by("id")
        return Response(ChannelOut(rows, many=True).data)

    @operation(
        "add_alert_channel",
        request=ChannelIn,
        responses=answers(
            201,
            NewChannelOut,
            "invalid",
            "role-too-low",
            "not-found",
            "name-taken",
            "limit-reached",
            "too-many-confirmations",
            "destination-forbidden",
            "body-too-large",
            "media-type",
        ),
    )
    def post(self, request: Request, tenant: str) -> Response:
        """Add a channel. An e-mail address gets alerts once it is confirmed with the link that Penstock sends to it.

        The response contains a webhook's signing secret, which cannot be read again.
        """
        row = access.get_tenant(self.user, tenant, access.CHANGE_CHANNELS)
        body = body_of(request, ChannelIn)
        now = timezone.now()
        channel, secret = add_alert_channel(tenant=row, kind=body["kind"], target=body["target"], now=now, by=self.user)
        headers = {"Cache-Control": "no-store"}
        return Response({**ChannelOut(channel).data, "secret": secret}, status=201, headers=headers)


class ChannelView(View):
    """One channel."""

    @operation("remove_alert_channel", responses=answers(204, None, "role-too-low", "not-found"))
    def delete(self, _request: Request, tenant: str, channel: str) -> Response:
        """Remove a channel. It gets no more notifications."""
        remove_alert_channel(
            channel=access.get_channel(self.user, tenant, channel, access.CHANGE_CHANNELS), by=self.user
        )
        return Response(status=204)


class ChannelConfirmationView(View):
    """Confirmation of a channel's e-mail address."""

    @operation(
        "resend_channel_confirmation",
        request=None,
        responses=answers(200, ChannelOut, "role-too-low", "not-found", "too-many-confirmations"),
    )
    def post(self, _request: Request, tenant: str, channel: str) -> Response:
        """Send the confirmation e-mail again. Nothing is sent to an active channel."""
        row = access.get_channel(self.user, tenant, channel, access.CHANGE_CHANNELS)
        ask_for_confirmation(channel=row, now=timezone.now(), by=self.user)
        return Response(ChannelOut(row).data)


class ChannelTestView(View):
    """Test message of a channel."""

    @operation(
        "test_alert_channel",
        request=None,
        responses=answers(202, ChannelOut, "role-too-low", "not-found", "channel-not-confirmed", "too-many-tests"),
    )
    def post(self, _request: Request, tenant: str, channel: str) -> Response:
        """Send a test message. Its result is in the channel once `test_due_at` is null: `tested_at` and `test_error`.

        PagerDuty gets an event of the severity `info`, and its resolution.
        """
        row = access.get_channel(self.user, tenant, channel, access.CHANGE_CHANNELS)
        request_channel_test(channel=row, now=timezone.now(), by=self.user)
        return Response(ChannelOut(row).data, status=202)


def _page(request: Request, pipe_ids: list[str]) -> Response:
    state = request.query_params.get("state", "")
    if state and state not in Alert.State.values:
        raise refused("state", f"needs one of {', '.join(Alert.State.values)}")
    rows, paginator = page_of(alerts_of(pipe_ids=pipe_ids, state=state), request, KeysetPage())
    return paginator.get_paginated_response(AlertOut(rows, many=True).data)
