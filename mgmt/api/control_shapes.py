"""What goes in and out about the control plane: cells, pauses, and the audit of what was done."""

from typing import Any

from rest_framework import serializers

from mgmt.api.parsing import StrictSerializer
from mgmt.api.shapes import PageOut
from mgmt.models import ControlAction, Controller, Verdict


class PauseIn(StrictSerializer):
    """Which controller is kept from changing what, why, and how long."""

    controller = serializers.ChoiceField(Controller.choices)
    cell = serializers.CharField(required=False, allow_null=True, default=None, max_length=20, help_text="Null: any.")
    reason = serializers.CharField(max_length=200, help_text="Customers whose revisions wait read it.")
    until = serializers.DateTimeField(required=False, allow_null=True, default=None, help_text="Null: until ended.")


class PauseOut(serializers.Serializer[Any]):
    """A controller that somebody holds back."""

    id = serializers.IntegerField()
    controller = serializers.ChoiceField(Controller.choices)
    cell = serializers.CharField(source="cell_id", allow_null=True, help_text="Null: everywhere.")
    reason = serializers.CharField()
    by = serializers.CharField(source="by.username")
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class VerdictOut(serializers.Serializer[Any]):
    """What the Observer makes of a cell."""

    state = serializers.ChoiceField(Verdict.State.choices)
    reasons = serializers.ListField(child=serializers.CharField())
    silenced = serializers.ListField(child=serializers.CharField(), help_text="Caused by a change under way.")
    since = serializers.DateTimeField()
    at = serializers.DateTimeField(help_text="When it was looked at last.")


class LeaseOut(serializers.Serializer[Any]):
    """Who changes a cell now."""

    holder = serializers.ChoiceField(Controller.choices)
    what = serializers.CharField()
    taken_at = serializers.DateTimeField()
    until = serializers.DateTimeField()


class CellOut(serializers.Serializer[Any]):
    """A cell: how it is, what runs in it, and who may not change it."""

    id = serializers.CharField(source="cell.id")
    epoch = serializers.IntegerField(source="cell.epoch")
    lanes = serializers.DictField(source="cell.lanes", child=serializers.IntegerField(), help_text="Wanted, by kind.")
    heard = serializers.DictField(child=serializers.IntegerField(), help_text="Heard of within 10 s, by kind.")
    pipes = serializers.IntegerField()
    dedicated_to = serializers.CharField(
        source="cell.dedicated_to_id", allow_null=True, help_text="The one tenant whose pipes are placed on it."
    )
    sleeps_after_s = serializers.IntegerField(
        source="cell.sleeps_after_s", allow_null=True, help_text="Without anything to do; null: it never sleeps."
    )
    asleep = serializers.BooleanField(source="cell.is_asleep", help_text="Nothing runs in it until something comes.")
    verdict = VerdictOut(allow_null=True)
    lease = LeaseOut(allow_null=True)
    pauses = PauseOut(many=True)


class CellIn(StrictSerializer):
    """A cell that is to be made."""

    name = serializers.CharField(max_length=20, help_text="1 to 16 lower-case letters and digits, a letter first.")


class KeepIn(StrictSerializer):
    """Whom a cell is for, and whether it sleeps."""

    tenant = serializers.CharField(
        allow_null=True, max_length=32, help_text="Only its pipes are placed on it, and they nowhere else. Null: all."
    )
    sleeps_after_s = serializers.IntegerField(
        required=False, allow_null=True, default=None, help_text="60 to 3600 without anything to do. Null: never."
    )


class ControlActionOut(serializers.Serializer[Any]):
    """One thing that was done to a cell or a pipe, or refused."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    controller = serializers.ChoiceField(ControlAction.CONTROLLERS)
    cell = serializers.CharField(source="cell_id", allow_null=True)
    pipe = serializers.CharField(source="pipe_id", allow_null=True)
    action = serializers.CharField()
    outcome = serializers.CharField()
    reason = serializers.CharField()
    author = serializers.CharField(source="author.username", allow_null=True, default=None)
    detail = serializers.DictField()


class ControlActionPageOut(PageOut):
    """A page of the audit, newest first."""

    results = ControlActionOut(many=True)
