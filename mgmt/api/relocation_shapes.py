"""What goes in and out about pipes that are moved between cells."""

from typing import Any

from rest_framework import serializers

from mgmt.api.parsing import StrictSerializer
from mgmt.api.shapes import PageOut
from mgmt.models import Relocation


class RelocationIn(StrictSerializer):
    """Which pipe is to be moved where, and why."""

    pipe = serializers.CharField(max_length=32)
    cell = serializers.CharField(max_length=20, help_text="Where to.")
    reason = serializers.CharField(max_length=200, help_text="Others will ask why.")


class RelocationOut(serializers.Serializer[Any]):
    """One way of a pipe from a cell to another."""

    id = serializers.IntegerField()
    pipe = serializers.CharField(source="pipe_id")
    from_cell = serializers.CharField(source="source_id")
    to_cell = serializers.CharField(source="target_id")
    state = serializers.ChoiceField(Relocation.State.choices)
    says = serializers.CharField(help_text="What it waits for, or how it ended.")
    reason = serializers.CharField()
    by = serializers.CharField(source="by.username", allow_null=True, default=None, help_text="Null: it went back.")
    asked_at = serializers.DateTimeField()
    switched_at = serializers.DateTimeField(allow_null=True, help_text="Since when new events go to `to_cell`.")
    finished_at = serializers.DateTimeField(allow_null=True)


class RelocationPageOut(PageOut):
    """A page of them, newest first."""

    results = RelocationOut(many=True)
