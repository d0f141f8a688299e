"""Bodies of the API: the lines of the home page, and what needs attention."""

from typing import Any, Final

from rest_framework import serializers

from mgmt.web.serializers import PageOut


class PipeSummaryOut(serializers.Serializer[Any]):
    """A pipe with its figures of the last hour."""

    pipe = serializers.CharField(source="pipe.id")
    name = serializers.CharField(source="pipe.name")
    state = serializers.CharField(
        source="standing.kind", help_text="`live`, `coming` (not deployed yet), `failed`, `paused` or `closed`."
    )
    reason = serializers.CharField(source="standing.reason", help_text="Why it waits or failed.")
    revision = serializers.IntegerField(source="standing.revision", help_text="Live revision; 0 without any.")
    next_revision = serializers.IntegerField(
        source="standing.next_revision", allow_null=True, help_text="Revision that is being introduced, or has failed."
    )
    share = serializers.IntegerField(
        source="standing.share", allow_null=True, help_text="Percent of the keys that the next revision has now."
    )
    per_s = serializers.FloatField(help_text="Events accepted per second in the last minute.")
    lag_p95_us = serializers.IntegerField(
        allow_null=True, help_text="95th percentile of the time from the event to the destination's response."
    )
    delivered = serializers.IntegerField()
    delivered_share = serializers.FloatField(
        allow_null=True, help_text="Share (0 to 1) of the deliveries that succeeded; null without any delivery."
    )
    undelivered = serializers.IntegerField(help_text="Undelivered messages, of all `causes`.")
    lost = serializers.IntegerField(source="lost_sealed", help_text="Lost messages of sealed minutes.")
    causes = serializers.IntegerField(help_text="Causes of undelivered messages of the last 24 hours.")
    needs_you = serializers.IntegerField(help_text="Number of these causes that need a person.")


class PipeSummaryPageOut(PageOut):
    """A page of pipes with their figures, newest pipe first."""

    results = PipeSummaryOut(many=True)


class SuspendedOut(serializers.Serializer[Any]):
    """A suspended destination."""

    pipe = serializers.CharField(source="pipe_id")
    destination = serializers.CharField(source="name")
    cause = serializers.CharField(source="state_cause")
    reason = serializers.CharField(source="state_reason")
    since = serializers.DateTimeField(source="state_since")


class FailedRevisionOut(serializers.Serializer[Any]):
    """A newest revision that has failed."""

    pipe = serializers.CharField(source="pipe_id")
    number = serializers.IntegerField()
    reason = serializers.CharField(source="state_reason")


class PipeLossOut(serializers.Serializer[Any]):
    """Lost messages of one pipe."""

    pipe = serializers.CharField(source="pipe.id")
    lost = serializers.IntegerField(source="units")


class OpenAlertOut(serializers.Serializer[Any]):
    """An open alert; see `GET /pipes/{pipe}/alerts/{alert}/` for its details."""

    id = serializers.CharField()
    pipe = serializers.CharField(source="pipe_id")
    destination = serializers.CharField()
    cause = serializers.CharField()
    state = serializers.CharField(help_text="`opened` or `acknowledged`.")
    count = serializers.IntegerField()
    opened_at = serializers.DateTimeField()


class SummaryOut(serializers.Serializer[Any]):
    """Problems of a tenant at this moment, as the daily digest has them. Each list has at most `limit` entries."""

    total = serializers.IntegerField(help_text="Number of all problems, also of those that are not listed.")
    unacknowledged_alerts = serializers.IntegerField(help_text="The number at Alerts in the console.")
    alerts = OpenAlertOut(many=True, help_text="Open alerts that are not snoozed, oldest first.")
    suspended = SuspendedOut(many=True, help_text="Suspended destinations.")
    failed = FailedRevisionOut(many=True, help_text="Pipes whose newest revision failed.")
    lost = PipeLossOut(many=True, help_text="Messages lost in minutes that were sealed in the last day.")


SUMMARY_EXAMPLE: Final = {
    "total": 2,
    "unacknowledged_alerts": 1,
    "alerts": [
        {
            "id": "alert_06gy7j9ykg0f7ya2mq4v",
            "pipe": "pipe_06gy7j9ykg0f7ya2mq4v",
            "destination": "crm",
            "cause": "rejected",
            "state": "opened",
            "count": 20,
            "opened_at": "2025-11-14T21:11:20Z",
        }
    ],
    "suspended": [],
    "failed": [],
    "lost": [{"pipe": "pipe_06gy7j9ykg0f7ya2mq4v", "lost": 1}],
}
PIPE_SUMMARIES_EXAMPLE: Final = {
    "next": None,
    "previous": None,
    "results": [
        {
            "pipe": "pipe_06gy7j9ykg0f7ya2mq4v",
            "name": "orders",
            "state": "live",
            "reason": "",
            "revision": 2,
            "next_revision": None,
            "share": None,
            "per_s": 8.4,
            "lag_p95_us": 38000,
            "delivered": 30240,
            "delivered_share": 0.9993,
            "undelivered": 20,
            "lost": 1,
            "causes": 1,
            "needs_you": 1,
        }
    ],
}
