"""Bodies of the API's live tail."""

from typing import Any, Final

from rest_framework import serializers


class CopyOut(serializers.Serializer[Any]):
    """Copy of a message, made by a peek step."""

    at = serializers.DateTimeField(help_text="Time at which the copy was stored.")
    node = serializers.CharField()
    step = serializers.CharField(help_text="Name of the peek step.")
    message = serializers.CharField(help_text="Id of the message.")
    position = serializers.CharField()
    child = serializers.IntegerField()
    revision = serializers.IntegerField()
    body = serializers.CharField(help_text="The message at this step; a long body is cut.")
    is_cut = serializers.BooleanField()


class TailOut(serializers.Serializer[Any]):
    """Newest copies of a pipe, newest first."""

    cursor = serializers.CharField(
        allow_null=True, help_text="Send it as `Last-Event-ID` to stream the copies after these; null without any."
    )
    results = CopyOut(many=True)


TAIL_EXAMPLE: Final = {
    "cursor": "1-4711",
    "results": [
        {
            "at": "2025-11-14T21:11:20Z",
            "node": "normalize",
            "step": "raw",
            "message": "019a8441-6f3c-7d51-8f0a-2b6d5c1f9e77",
            "position": "1-0-7",
            "child": 0,
            "revision": 2,
            "body": '{"type": "order.created"}',
            "is_cut": False,
        }
    ],
}
