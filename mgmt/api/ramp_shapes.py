"""What goes in and out about ramps."""

from typing import Any

from rest_framework import serializers

from dataplane.ledger.bins import Bin
from mgmt.api.parsing import StrictSerializer


class RollBackIn(StrictSerializer):
    """Why a revision is taken back."""

    reason = serializers.CharField(required=False, allow_blank=True, default="", max_length=200)


class FiguresOut(serializers.Serializer[Any]):
    """What became of one revision's messages during a step."""

    taken = serializers.IntegerField(help_text="Messages that lanes began with.")
    failed = serializers.IntegerField(help_text="Dead, or refused and waiting for their next try.")
    filtered = serializers.IntegerField(help_text="Ended by the revision's own rules; not judged.")
    stuck = serializers.IntegerField(help_text="Still before the route when their minute is well over.")
    lost = serializers.IntegerField()
    p95_us = serializers.IntegerField(
        allow_null=True, help_text="From ingest through the steps, the 95th percentile in microseconds."
    )


class StepOut(serializers.Serializer[Any]):
    """One step of a ramp: as it was left, or as it stands."""

    share = serializers.IntegerField(source="row.share", help_text="Percent of the keys.")
    began_at = serializers.DateTimeField(source="row.began_at")
    ended_at = serializers.DateTimeField(source="row.ended_at", allow_null=True)
    ramping = FiguresOut()
    stable = FiguresOut()


class RampOut(serializers.Serializer[Any]):
    """How a revision came live beside the one before, or is doing so, or went back."""

    revision = serializers.IntegerField(source="row.revision.number")
    stable = serializers.IntegerField(source="row.stable.number", help_text="Compared with, and gone back to.")
    outcome = serializers.CharField(
        source="row.outcome", help_text="`live`, `rolled back` or `overtaken`; empty while it goes on."
    )
    reason = serializers.CharField(source="row.reason", help_text="Why it went back.")
    waits_for = serializers.CharField(help_text="What the next step waits for; empty when it is over.")
    share = serializers.IntegerField(source="row.share")
    began_at = serializers.DateTimeField(source="row.began_at")
    held_at = serializers.DateTimeField(source="row.held_at", allow_null=True)
    held_by = serializers.CharField(source="row.held_by.username", allow_null=True, default=None)
    ended_at = serializers.DateTimeField(source="row.ended_at", allow_null=True)
    ended_by = serializers.CharField(
        source="row.ended_by.username", allow_null=True, default=None, help_text="Null: it ended by itself."
    )
    steps = StepOut(many=True)


class AdmissionOut(serializers.Serializer[Any]):
    """How far a new pipe is let in."""

    share = serializers.IntegerField(source="row.share", help_text="Percent of its keys that pass.")
    expected_per_s = serializers.IntegerField(source="row.expected_per_s", help_text="As its maker said.")
    reason = serializers.CharField(source="row.reason", help_text="What it waits for, or why it went back.")
    step_at = serializers.DateTimeField(
        source="row.step_at", allow_null=True, help_text="Since when this share is tried; null until traffic comes."
    )
    held_at = serializers.DateTimeField(source="row.held_at", allow_null=True)
    held_by = serializers.CharField(
        source="row.held_by.username", allow_null=True, default=None, help_text="Null: by itself, if it is held."
    )
    ended_at = serializers.DateTimeField(source="row.ended_at", allow_null=True)
    held = serializers.IntegerField(help_text="Messages that are held before its steps now.")


class UnitOut(serializers.Serializer[Any]):
    """A unit that the ramping revision took, and where it is now."""

    position = serializers.CharField(help_text="generation-partition-offset in the ingest topic.")
    child = serializers.IntegerField()
    destination = serializers.CharField(help_text="Empty: before one was chosen.")
    bin = serializers.ChoiceField([name.value for name in Bin])


class TakenOut(serializers.Serializer[Any]):
    """What a ramping revision took: how many units are in each bin, and the newest ones of what was asked for."""

    bins = serializers.DictField(child=serializers.IntegerField())
    units = UnitOut(many=True)
