"""Bodies of the API's sequences."""

from typing import Any

from rest_framework import serializers

from mgmt.models import SequenceBreakRow


class SequenceSourceOut(serializers.Serializer[Any]):
    """Counts of one source with a sequence."""

    source = serializers.CharField()  # type: ignore[assignment]  # a field, not DRF's attribute
    path = serializers.CharField(help_text="Path of the number; empty if the source has no sequence any more.")
    compared = serializers.IntegerField(help_text="Events whose number was compared with the earlier ones of its key.")
    gaps = serializers.IntegerField(help_text="Events before which numbers were missing when they arrived.")
    out_of_order = serializers.IntegerField(
        help_text="Events that arrived after a higher number, or a later TimeUuid, of their key."
    )
    repeated = serializers.IntegerField(help_text="Events whose number had arrived before.")


class SequenceBreakOut(serializers.Serializer[Any]):
    """One event that does not follow the earlier ones of its key."""

    kind = serializers.ChoiceField(SequenceBreakRow.Kind.choices, source="row.kind")
    source = serializers.CharField(source="row.source")  # type: ignore[assignment]  # a field, not DRF's attribute
    key = serializers.CharField(help_text="Masked if the pipe masks it.")
    number = serializers.CharField(help_text="Number of the event, or the time of its TimeUuid.")
    previous = serializers.CharField(help_text="Highest earlier number of the key, or the latest time.")
    type = serializers.ChoiceField(["number", "time"], help_text="Type of `number` and `previous`.")
    missing = serializers.IntegerField(
        source="row.missing", help_text="Of a gap, how many of its numbers have not arrived so far; else 0."
    )
    missing_ranges = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField(), min_length=2, max_length=2),
        help_text="First and last number of each run that is missing.",
    )
    position = serializers.CharField(help_text="Position of the event.")
    at = serializers.DateTimeField(source="row.at", help_text="Ingest time of the event.")


class SequenceOut(serializers.Serializer[Any]):
    """Sequences of a pipe in a range: counts by source, and breaks, the newest first."""

    sources = SequenceSourceOut(many=True)
    results = SequenceBreakOut(many=True)
