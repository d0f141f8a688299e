"""Bodies of the API's windows."""

from typing import Any

from rest_framework import serializers


class WindowOut(serializers.Serializer[Any]):
    """A window of the live revision."""

    name = serializers.CharField()
    span = serializers.JSONField(help_text="As in the spec.")
    by = serializers.ListField(child=serializers.CharField(), help_text="Paths of the window's key.")
    late_s = serializers.IntegerField(help_text="Events older than this many seconds are late and not aggregated.")
    late = serializers.IntegerField(help_text="Events of the last day that were late. The pipe still processes them.")


class WindowsOut(serializers.Serializer[Any]):
    """Windows of a pipe, by name."""

    results = WindowOut(many=True)


class PaneOut(serializers.Serializer[Any]):
    """One open window of a key, with its values so far."""

    start = serializers.DateTimeField()
    end = serializers.DateTimeField(help_text="Time at which it closes if no more events arrive.")
    events = serializers.IntegerField()
    values = serializers.JSONField(help_text="Values by the names in the spec.")


class CurrentOut(serializers.Serializer[Any]):
    """Current values of a window for one key."""

    window = serializers.CharField()
    by = serializers.JSONField(help_text="Key: a value for each path.")
    as_of = serializers.DateTimeField(
        allow_null=True, help_text="All events that arrived before this time are included."
    )
    open = PaneOut(
        many=True, help_text="Open windows in the order of time; empty if no open window has an event of the key."
    )
