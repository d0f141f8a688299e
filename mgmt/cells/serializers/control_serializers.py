"""Bodies of the API's control plane: cells, pauses of controllers, and the control audit."""

from typing import Any

from rest_framework import serializers

from mgmt.cells.models.cells import MOST_PARTITIONS
from mgmt.models import CellVerdict, ControlAction, Controller
from mgmt.web.parsers import StrictSerializer
from mgmt.web.serializers import PageOut


class PauseIn(StrictSerializer):
    """Pause of a controller, for one cell or for all."""

    controller = serializers.ChoiceField(Controller.choices)
    cell = serializers.CharField(
        required=False, allow_null=True, default=None, max_length=20, help_text="Null: all cells."
    )
    reason = serializers.CharField(max_length=200, help_text="Shown to customers whose revisions wait.")
    until = serializers.DateTimeField(
        required=False, allow_null=True, default=None, help_text="Null: until it is ended."
    )


class PauseOut(serializers.Serializer[Any]):
    """Pause of a controller."""

    id = serializers.IntegerField()
    controller = serializers.ChoiceField(Controller.choices)
    cell = serializers.CharField(source="cell_id", allow_null=True, help_text="Null: all cells.")
    reason = serializers.CharField()
    by = serializers.CharField(source="by.username")
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class VerdictOut(serializers.Serializer[Any]):
    """The Observer's verdict on a cell."""

    state = serializers.ChoiceField(CellVerdict.State.choices)
    reasons = serializers.ListField(child=serializers.CharField())
    silenced = serializers.ListField(
        child=serializers.CharField(), help_text="Reasons that a change in progress explains."
    )
    since = serializers.DateTimeField()
    at = serializers.DateTimeField(help_text="Time of the newest check.")


class LeaseOut(serializers.Serializer[Any]):
    """Lease of the controller that is changing the cell."""

    holder = serializers.ChoiceField(Controller.choices)
    what = serializers.CharField()
    taken_at = serializers.DateTimeField()
    until = serializers.DateTimeField()


class CellOut(serializers.Serializer[Any]):
    """Cell with its verdict, its lanes, its lease and its pauses."""

    id = serializers.CharField(source="cell.id")
    epoch = serializers.IntegerField(source="cell.epoch")
    lanes = serializers.DictField(
        source="cell.lanes", child=serializers.IntegerField(), help_text="Desired number of lanes, by kind."
    )
    heard = serializers.DictField(
        child=serializers.IntegerField(), help_text="Processes with a heartbeat in the last 10 s, by kind."
    )
    pipes = serializers.IntegerField()
    partitions = serializers.IntegerField(
        allow_null=True, help_text="Partitions of its topics; null: the installation's default, until they are created."
    )
    dedicated_to = serializers.CharField(
        source="cell.dedicated_to_id",
        allow_null=True,
        help_text="The only tenant whose pipes are placed on the cell; null: all tenants.",
    )
    sleeps_after_s = serializers.IntegerField(
        source="cell.sleeps_after_s",
        allow_null=True,
        help_text="Seconds without work after which the cell sleeps; null: never.",
    )
    asleep = serializers.BooleanField(
        source="cell.is_asleep", help_text="True if no lane runs until the next message arrives."
    )
    verdict = VerdictOut(allow_null=True)
    lease = LeaseOut(allow_null=True)
    pauses = PauseOut(many=True)


class CellIn(StrictSerializer):
    """Cell to create."""

    name = serializers.CharField(
        max_length=20, help_text="1 to 16 lower-case letters and digits, starting with a letter."
    )
    partitions = serializers.IntegerField(
        min_value=1,
        max_value=MOST_PARTITIONS,
        required=False,
        allow_null=True,
        default=None,
        help_text="Partitions of its topics, fixed from then on. Null: the installation's default.",
    )


class KeepIn(StrictSerializer):
    """Dedication of a cell to one tenant, and its sleep."""

    tenant = serializers.CharField(
        allow_null=True,
        max_length=32,
        help_text="Only this tenant's pipes are placed on the cell, and on no other. Null: pipes of all tenants.",
    )
    sleeps_after_s = serializers.IntegerField(
        required=False, allow_null=True, default=None, help_text="60 to 3600 seconds without work. Null: never."
    )


class ControlActionOut(serializers.Serializer[Any]):
    """One change to a cell or pipe by a controller or a person, or its refusal."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    controller = serializers.ChoiceField(ControlAction.CONTROLLERS)
    cell = serializers.CharField(source="cell_id", allow_null=True)
    pipe = serializers.CharField(source="pipe_id", allow_null=True)
    action = serializers.CharField()
    outcome = serializers.ChoiceField(ControlAction.Outcome.choices)
    refusal = serializers.ChoiceField(
        ControlAction.Refusal.choices,
        allow_blank=True,
        help_text="Type of the reason; empty for other outcomes than `refused`.",
    )
    reason = serializers.CharField()
    author = serializers.CharField(source="author.username", allow_null=True, default=None)
    detail = serializers.DictField()


class ControlActionPageOut(PageOut):
    """A page of the control audit, newest first."""

    results = ControlActionOut(many=True)
