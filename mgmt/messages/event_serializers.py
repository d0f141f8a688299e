"""Bodies of the API's event log."""

from typing import Any, Final

from rest_framework import serializers


class LoggedEventOut(serializers.Serializer[Any]):
    """Event as ingest has stored it, before any step."""

    id = serializers.CharField(help_text="Id of the message (`webhook-id`).")
    position = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # hides the argument `source` of a field
    revision = serializers.IntegerField(help_text="Revision that processes it.")
    accepted_at = serializers.DateTimeField()
    headers = serializers.DictField(
        child=serializers.CharField(), help_text="Content type, and the attributes of a CloudEvent as `ce-<name>`."
    )
    body = serializers.CharField(
        allow_null=True, help_text="The event; null if the pipe masks fields of it and it is not JSON."
    )
    is_masked = serializers.BooleanField(help_text="True if the pipe masks fields; their values are masked in `body`.")


class EventLogOut(serializers.Serializer[Any]):
    """Events after a cursor. Those of one key are in the order in which they were stored."""

    results = LoggedEventOut(many=True)
    cursor = serializers.CharField(help_text="Send it as `after` to get the next events.")
    more = serializers.BooleanField(help_text="True if more events may follow now; false at the end of the log.")
    gap = serializers.BooleanField(help_text="True if events after the cursor of the request are no longer kept.")


EVENT_LOG_EXAMPLE: Final = {
    "results": [
        {
            "id": "019a8441-6f3c-7d51-8f0a-2b6d5c1f9e77",
            "position": "1-0-7",
            "source": "shop",
            "revision": 2,
            "accepted_at": "2025-11-14T21:11:20Z",
            "headers": {"content-type": "application/json"},
            "body": '{"type": "order.created"}',
            "is_masked": False,
        }
    ],
    "cursor": "kucAAAGakPC0wIEBkggA",
    "more": False,
    "gap": False,
}
