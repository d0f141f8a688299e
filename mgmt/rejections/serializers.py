"""Bodies of the API's rejected events."""

from typing import Any

from rest_framework import serializers


class RejectionOut(serializers.Serializer[Any]):
    """Events of one source that were rejected for one reason, at one place, from one sender."""

    id = serializers.IntegerField(source="row.id")
    source = serializers.CharField(source="row.source")  # type: ignore[assignment]  # a field, not DRF's attribute
    event_type = serializers.CharField(
        source="row.event_type", help_text="Empty if the source has one type, or the type is unknown."
    )
    code = serializers.CharField(source="row.code", help_text="Code of the response that the sender got.")
    pointer = serializers.CharField(
        source="row.pointer", help_text="JSON pointer into the event, with `*` for an index; empty for the whole event."
    )
    detail = serializers.CharField(source="row.detail", help_text="What was needed and what came, in the newest event.")
    sender = serializers.CharField(help_text="API key in words, or the Kafka topic.")
    stored = serializers.BooleanField(
        source="is_stored", help_text="True for records of a Kafka source, which are dead letters of the pipe."
    )
    events = serializers.IntegerField(help_text="Number of events in the range.")
    first_at = serializers.DateTimeField(source="row.first_at")
    last_at = serializers.DateTimeField(source="row.last_at", help_text="Start of the newest minute with one.")


class RejectionsOut(serializers.Serializer[Any]):
    """Rejected events of a pipe by kind, the most frequent first."""

    results = RejectionOut(many=True)


class RejectedSampleOut(serializers.Serializer[Any]):
    """A rejected event."""

    at = serializers.DateTimeField()
    size_bytes = serializers.IntegerField()
    body = serializers.CharField(
        help_text="Shortened, and without the values that the pipe masks; empty if it cannot be shown."
    )


class SchemaProposalOut(serializers.Serializer[Any]):
    """Version of a schema that accepts the events. It is not registered."""

    schema = serializers.JSONField(source="document")
    words = serializers.CharField(help_text="The change, in words.")


class RejectionDetailOut(RejectionOut):
    """Rejected events of one kind, with samples and the schema that they do not fit."""

    todo = serializers.CharField(source="reason.todo", help_text="What to do, in words.")
    samples = RejectedSampleOut(many=True)
    subject = serializers.CharField(
        source="subject.name", default=None, allow_null=True, help_text="Subject that the events were checked with."
    )
    subject_id = serializers.CharField(source="subject.id", default=None, allow_null=True)
    newest_version = serializers.IntegerField(source="accepting.newest.number", default=None, allow_null=True)
    proposal = SchemaProposalOut(
        source="accepting.proposal",
        default=None,
        allow_null=True,
        help_text="Null if no version can be derived that accepts the events.",
    )
