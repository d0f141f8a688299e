"""Bodies of the API's pipe migrations ("relocations")."""

from typing import Any

from rest_framework import serializers

from mgmt.models import PipeMigration
from mgmt.web.parsers import StrictSerializer
from mgmt.web.serializers import PageOut


class RelocationIn(StrictSerializer):
    """Migration of a pipe to start."""

    pipe = serializers.CharField(max_length=32)
    cell = serializers.CharField(max_length=20, help_text="Id of the target cell.")
    reason = serializers.CharField(max_length=200, help_text="Kept in the audit.")


class RelocationOut(serializers.Serializer[Any]):
    """Migration of a pipe from one cell to another."""

    id = serializers.IntegerField()
    pipe = serializers.CharField(source="pipe_id")
    from_cell = serializers.CharField(source="source_id")
    to_cell = serializers.CharField(source="target_id")
    state = serializers.ChoiceField(PipeMigration.State.choices)
    says = serializers.CharField(help_text="Reason why it waits, or how it ended.")
    reason = serializers.CharField()
    by = serializers.CharField(
        source="by.username", allow_null=True, default=None, help_text="Null: an automatic return to the first cell."
    )
    asked_at = serializers.DateTimeField()
    switched_at = serializers.DateTimeField(
        allow_null=True, help_text="Time since which new events are sent to `to_cell`."
    )
    finished_at = serializers.DateTimeField(allow_null=True)


class RelocationPageOut(PageOut):
    """A page of migrations, newest first."""

    results = RelocationOut(many=True)
