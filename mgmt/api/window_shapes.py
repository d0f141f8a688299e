"""Bodies of the API's windows."""

from typing import Any

from rest_framework import serializers


class WindowOut(serializers.Serializer[Any]):
    """A window of the live revision."""

    name = serializers.CharField()
    span = serializers.JSONField(help_text="As in the spec.")
    by = serializers.ListField(child=serializers.CharField(), help_text="The paths of its key.")
    late_s = serializers.IntegerField(help_text="Events further behind our clock are late, and not taken in.")
    late = serializers.IntegerField(help_text="Events of the last day that were late. They went on all the same.")


class WindowsOut(serializers.Serializer[Any]):
    """All windows of a pipe, by name."""

    results = WindowOut(many=True)


class PaneOut(serializers.Serializer[Any]):
    """One open window of a key, so far."""

    start = serializers.DateTimeField()
    end = serializers.DateTimeField(help_text="When it would close if nothing more came.")
    events = serializers.IntegerField()
    values = serializers.JSONField(help_text="By the names in the spec.")


class CurrentOut(serializers.Serializer[Any]):
    """What a window says of a key now."""

    window = serializers.CharField()
    by = serializers.JSONField(help_text="The key: path and value.")
    as_of = serializers.DateTimeField(allow_null=True, help_text="Everything that came before this moment is in.")
    open = PaneOut(many=True, help_text="In the order of time; empty if no event of the key is in an open window.")
