"""Bodies of the API's ramps and admissions."""

from typing import Any

from rest_framework import serializers

from dataplane.ledger.bins import Bin
from mgmt.web.parsers import StrictSerializer


class RollBackIn(StrictSerializer):
    """Reason of a rollback."""

    reason = serializers.CharField(required=False, allow_blank=True, default="", max_length=200)


class FiguresOut(serializers.Serializer[Any]):
    """Results of one revision's messages during a step."""

    taken = serializers.IntegerField(help_text="Messages that lanes started to process.")
    failed = serializers.IntegerField(help_text="Messages that are dead, or wait for a retry.")
    filtered = serializers.IntegerField(help_text="Messages that the revision's own rules ended; not judged.")
    stuck = serializers.IntegerField(
        help_text="Messages that have not reached the route 90 s after the end of their minute."
    )
    lost = serializers.IntegerField()
    p95_us = serializers.IntegerField(
        allow_null=True, help_text="95th percentile of the time from ingest through the steps, in microseconds."
    )


class StepOut(serializers.Serializer[Any]):
    """One step of a ramp, with its final or current figures."""

    share = serializers.IntegerField(source="row.share", help_text="Percent of the keys.")
    began_at = serializers.DateTimeField(source="row.began_at")
    ended_at = serializers.DateTimeField(source="row.ended_at", allow_null=True)
    ramping = FiguresOut()
    stable = FiguresOut()


class RampOut(serializers.Serializer[Any]):
    """Ramp of a revision next to the stable one: in progress, live, or rolled back."""

    revision = serializers.IntegerField(source="row.revision.number")
    stable = serializers.IntegerField(
        source="row.stable.number", help_text="Revision used for comparison and for a rollback."
    )
    outcome = serializers.CharField(
        source="row.outcome", help_text="`live`, `rolled back` or `overtaken`; empty while the ramp is in progress."
    )
    reason = serializers.CharField(source="row.reason", help_text="Reason of the rollback.")
    waits_for = serializers.CharField(help_text="Condition for the next step; empty after the end.")
    share = serializers.IntegerField(source="row.share")
    began_at = serializers.DateTimeField(source="row.began_at")
    held_at = serializers.DateTimeField(source="row.held_at", allow_null=True)
    held_by = serializers.CharField(source="row.held_by.username", allow_null=True, default=None)
    ended_at = serializers.DateTimeField(source="row.ended_at", allow_null=True)
    ended_by = serializers.CharField(
        source="row.ended_by.username", allow_null=True, default=None, help_text="Null: it ended automatically."
    )
    steps = StepOut(many=True)


class AdmissionOut(serializers.Serializer[Any]):
    """Admission of a new pipe."""

    share = serializers.IntegerField(source="row.share", help_text="Percent of the pipe's keys that are admitted.")
    expected_per_s = serializers.IntegerField(
        source="row.expected_per_s", help_text="Events per second, as given when the pipe was created."
    )
    reason = serializers.CharField(source="row.reason", help_text="Reason why it waits, or why the share was reduced.")
    step_at = serializers.DateTimeField(
        source="row.step_at", allow_null=True, help_text="Start of the current step; null until events arrive."
    )
    held_at = serializers.DateTimeField(source="row.held_at", allow_null=True)
    held_by = serializers.CharField(
        source="row.held_by.username", allow_null=True, default=None, help_text="Null: held automatically, or not held."
    )
    ended_at = serializers.DateTimeField(source="row.ended_at", allow_null=True)
    held = serializers.IntegerField(help_text="Number of messages that are held before the pipe's steps now.")


class UnitOut(serializers.Serializer[Any]):
    """A unit that the ramping revision processed, and its bin now."""

    position = serializers.CharField(help_text="`generation-partition-offset` of the ingest record.")
    child = serializers.IntegerField()
    destination = serializers.CharField(help_text="Empty: no destination was chosen yet.")
    bin = serializers.ChoiceField([name.value for name in Bin])


class TakenOut(serializers.Serializer[Any]):
    """Units that a ramping revision processed: a count for each bin, and the newest units that match the request."""

    bins = serializers.DictField(child=serializers.IntegerField())
    units = UnitOut(many=True)
