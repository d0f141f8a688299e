"""Bodies of the API's event types."""

from typing import Any

from rest_framework import serializers

from mgmt.web.parsers import StrictSerializer

TYPE_FROM_HELP = (
    "Place of an event's type: `field:<path>`, a field of the event such as `field:meta.kind`; `header:<name>`, a "
    "header of the request or Kafka record, where `ce-type` is the attribute of a CloudEvent; or empty, if the source "
    "has one event type."
)


class EventTypesIn(StrictSerializer):
    """All event types of a source."""

    type_from = serializers.CharField(allow_blank=True, max_length=255, default="", help_text=TYPE_FROM_HELP)
    subjects = serializers.DictField(
        child=serializers.CharField(max_length=255, trim_whitespace=False),
        help_text='Subject of each event type, at most 20. The only type is `""` if `type_from` is empty. `{}`: the '
        "source accepts all events.",
    )
    based_on = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=2**31 - 1,
        help_text="Version that your change is based on, 0 if there was none. Without it, any version is replaced.",
    )


class EventTypeOut(serializers.Serializer[Any]):
    """One event type of a source."""

    name = serializers.CharField(help_text="Empty if the source has one event type.")
    subject = serializers.CharField(source="subject.name")
    subject_id = serializers.CharField(help_text="Id of the subject in `/api/v1/schemas/`.")
    schema_type = serializers.CharField()
    newest_version = serializers.IntegerField(source="newest_number", help_text="Version that JSON events must fit.")
    deprecated_at = serializers.DateTimeField(source="subject.deprecated_at", allow_null=True)


class EventTypesOut(serializers.Serializer[Any]):
    """Event types of a source."""

    version = serializers.IntegerField(help_text="Grows with each change; 0 if they were never set.")
    type_from = serializers.CharField(help_text=TYPE_FROM_HELP)
    types = EventTypeOut(many=True)


class TrafficLineOut(serializers.Serializer[Any]):
    """Events of one source that were checked with one version."""

    version = serializers.IntegerField(source="number")
    pipe = serializers.CharField(source="source.pipe_id")
    source = serializers.CharField(source="source.name")  # type: ignore[assignment]  # a field, not DRF's attribute
    accepted = serializers.IntegerField(source="tally.accepted")
    rejected = serializers.IntegerField(
        source="tally.rejected", help_text="Events that did not fit; of a Kafka source, those that became dead letters."
    )
    rejected_share = serializers.FloatField(source="tally.rejected_share", allow_null=True, help_text="From 0 to 1.")


class TrafficOut(serializers.Serializer[Any]):
    """Traffic of a subject by version and source, newest version first."""

    results = TrafficLineOut(many=True)
