"""Bodies of the API's status board, losses of all tenants, common causes and histories of controllers. For staff."""

from typing import Any, Final

from rest_framework import serializers

from mgmt.cells.problems import ProblemKind
from mgmt.cells.serializers.control_serializers import ControlActionOut, LeaseOut, PauseOut, VerdictOut
from mgmt.ledger.serializers import LossOut
from mgmt.models import ControlAction, Controller, KafkaCheck, TaskRun

PROBLEM_KINDS: Final = [(kind.value, kind.value) for kind in ProblemKind]


class AffectedOut(serializers.Serializer[Any]):
    """Number of tenants and pipes that a problem affects."""

    tenants = serializers.IntegerField()
    pipes = serializers.IntegerField(help_text="0 if only the tenants are counted.")


class ProblemOnBoardOut(serializers.Serializer[Any]):
    """Problem of the platform, with the next step."""

    kind = serializers.ChoiceField(PROBLEM_KINDS)
    what = serializers.CharField()
    since = serializers.DateTimeField(allow_null=True, help_text="Null: its start is unknown.")
    affected = AffectedOut(allow_null=True, help_text="Null: it affects no messages yet.")
    todo = serializers.CharField(help_text="Next step for staff.")


class AffectedAlertOut(serializers.Serializer[Any]):
    """Alert of one tenant about a common cause."""

    id = serializers.CharField()
    tenant = serializers.CharField(source="tenant_id")
    tenant_name = serializers.CharField(source="tenant")
    pipe = serializers.CharField(source="pipe_id")
    pipe_name = serializers.CharField(source="pipe")
    destination = serializers.CharField()
    count = serializers.IntegerField()
    opened_at = serializers.DateTimeField()
    last_at = serializers.DateTimeField(help_text="Time of the newest failure.")


class CommonCauseOut(serializers.Serializer[Any]):
    """One failure at the same host for several tenants."""

    words = serializers.CharField(help_text="The failure as a phrase, such as `api.example.com returns 503`.")
    cause = serializers.CharField(source="failure.cause")
    status = serializers.IntegerField(source="failure.status", help_text="HTTP status; 0 without a response.")
    host = serializers.CharField(source="failure.host")
    fingerprint = serializers.CharField(
        source="failure.fingerprint", help_text="Of the response; empty without a body."
    )
    tenants = serializers.IntegerField()
    pipes = serializers.IntegerField()
    since = serializers.DateTimeField(help_text="Time at which the first of the alerts was opened.")
    last_at = serializers.DateTimeField()
    alerts = AffectedAlertOut(many=True, help_text="Open alerts, the oldest first.")


class CellOnBoardOut(serializers.Serializer[Any]):
    """Cell on the status board."""

    id = serializers.CharField(source="line.cell.id")
    verdict = VerdictOut(source="line.verdict", allow_null=True)
    asleep = serializers.BooleanField(source="line.cell.is_asleep")
    lanes_wanted = serializers.IntegerField(source="wanted")
    lanes_running = serializers.IntegerField(source="running", help_text="Desired lanes that send heartbeats.")
    oldest_heartbeat_at = serializers.DateTimeField(
        source="oldest_beat_at",
        allow_null=True,
        help_text="Newest heartbeat of the expected process that has been silent longest; null if one sent none.",
    )
    lag_us = serializers.IntegerField(allow_null=True, help_text="Of the slower of process and transmit.")
    stuck = serializers.BooleanField(source="is_stuck", help_text="True if messages wait and none is settled.")
    in_per_s = serializers.FloatField(source="came", allow_null=True)
    lags_us = serializers.ListField(
        source="trend.lags_us",
        child=serializers.IntegerField(allow_null=True),
        help_text="Lag in each five minutes of the last hour, oldest first; null: not measured.",
    )
    rates = serializers.ListField(
        source="trend.rates",
        child=serializers.FloatField(allow_null=True),
        help_text="Events in per second in each five minutes of the last hour, oldest first.",
    )
    lost = serializers.IntegerField(help_text="Messages lost in the last 24 hours, as far as `losses/` lists them.")
    affected = AffectedOut(help_text="Tenants and pipes of the cell.")


class TaskRunOut(serializers.Serializer[Any]):
    """Last run of a controller's task."""

    at = serializers.DateTimeField(help_text="When it last completed; a run that failed does not change it.")
    outcome = serializers.ChoiceField(TaskRun.Outcome.choices)
    since = serializers.DateTimeField(help_text="Since when each run has had this outcome.")
    said = serializers.CharField()


class ControllerOnBoardOut(serializers.Serializer[Any]):
    """Controller on the status board."""

    name = serializers.ChoiceField(Controller.choices, source="line.name")
    pauses = PauseOut(source="line.pauses", many=True)
    leases = LeaseOut(source="line.leases", many=True)
    run = TaskRunOut(allow_null=True)
    overdue = serializers.BooleanField(source="is_overdue")
    last = ControlActionOut(allow_null=True, help_text="Its newest change or refusal.")
    waiting = serializers.ListField(child=serializers.CharField(), help_text="Pending work.")


class BrokerOut(serializers.Serializer[Any]):
    """Kafka broker, as of the last response."""

    id = serializers.IntegerField()
    address = serializers.CharField(help_text="Empty if it was never reachable.")
    alive = serializers.BooleanField()


class KafkaOut(serializers.Serializer[Any]):
    """Last check of Kafka."""

    at = serializers.DateTimeField()
    state = serializers.ChoiceField(KafkaCheck.State.choices)
    since = serializers.DateTimeField()
    error = serializers.CharField()
    brokers = BrokerOut(many=True)
    partitions = serializers.IntegerField()
    under_replicated = serializers.IntegerField()
    leaderless = serializers.IntegerField()
    examples = serializers.ListField(child=serializers.CharField(), help_text="Some of these partitions, worst first.")


class OldestWaitingOut(serializers.Serializer[Any]):
    """Destination with the oldest message that waits for delivery, of all tenants."""

    tenant = serializers.CharField(source="destination.pipe.tenant_id")
    pipe = serializers.CharField(source="destination.pipe_id")
    destination = serializers.CharField(source="destination.name")
    oldest_at = serializers.DateTimeField(help_text="Minute of the message.")
    waiting = serializers.IntegerField(help_text="Messages that wait at the destination.")


class ReplicasOut(serializers.Serializer[Any]):
    """Ingest replicas."""

    wanted = serializers.IntegerField()
    running = serializers.IntegerField()


class BoardOut(serializers.Serializer[Any]):
    """The status board."""

    now = serializers.DateTimeField()
    problems = ProblemOnBoardOut(many=True, help_text="Those that affect most tenants first.")
    common_causes = CommonCauseOut(source="causes", many=True)
    cells = CellOnBoardOut(many=True)
    controllers = ControllerOnBoardOut(many=True)
    kafka = KafkaOut(allow_null=True, help_text="Null: not checked yet.")
    ingest = ReplicasOut()
    oldest = OldestWaitingOut(allow_null=True)
    lost = serializers.IntegerField(source="losses.lost", help_text="Messages lost in the last 24 hours.")


class LossLineOut(serializers.Serializer[Any]):
    """Loss of one sealed minute of one pipe, as it is now."""

    tenant = serializers.CharField(source="pipe.tenant_id")
    tenant_name = serializers.CharField(source="pipe.tenant.name")
    pipe = serializers.CharField(source="pipe.id")
    pipe_name = serializers.CharField(source="pipe.name")
    cell = serializers.CharField(source="pipe.cell_id", allow_null=True)
    minute = serializers.IntegerField(source="bucket", help_text="Minutes since 1970-01-01T00:00Z.")
    starts = serializers.DateTimeField()
    loss = LossOut()


class AllLossesOut(serializers.Serializer[Any]):
    """Sealed minutes of all tenants that lost messages, newest first."""

    range = serializers.CharField()
    results = LossLineOut(many=True)
    next_before = serializers.CharField(allow_null=True, help_text="`before` of the next page; null on the last one.")


class HistoryLineOut(serializers.Serializer[Any]):
    """One action of a controller, or repeated refusals of it."""

    action = serializers.CharField(source="action.action")
    outcome = serializers.ChoiceField(ControlAction.Outcome.choices, source="action.outcome")
    refusal = serializers.ChoiceField(
        ControlAction.Refusal.choices,
        source="action.refusal",
        allow_blank=True,
        help_text="Type of the reason; empty for other outcomes than `refused`.",
    )
    reason = serializers.CharField(source="action.reason", help_text="Of the newest entry.")
    cell = serializers.CharField(source="action.cell_id", allow_null=True)
    count = serializers.IntegerField(help_text="Number of entries that the line stands for.")
    first_at = serializers.DateTimeField()
    last_at = serializers.DateTimeField()
    pipes = serializers.ListField(child=serializers.CharField(), help_text="Ids of the pipes that they were about.")


class HistoryOut(serializers.Serializer[Any]):
    """History of a controller, newest first; refusals are folded until the controller changes the cell."""

    results = HistoryLineOut(many=True)
    next_before = serializers.IntegerField(
        allow_null=True, help_text="`before` of the next page; null on the last one."
    )
