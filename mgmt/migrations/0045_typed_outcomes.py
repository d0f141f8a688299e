"""Type the outcomes of the control audit and of task runs, and the findings of a verdict; add the cluster's health."""

from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Now

# The trigger keeps the audit's entries as they were written; this is the one rewrite, of words into types.
TYPED = """
ALTER TABLE mgmt_controlaction DISABLE TRIGGER control_action_is_kept;
UPDATE mgmt_controlaction SET outcome = CASE outcome
        WHEN 'asked' THEN 'requested' WHEN 'given up' THEN 'cancelled' WHEN 'turned back' THEN 'rolled back'
        ELSE 'failed' END
    WHERE outcome NOT IN ('done', 'requested', 'cancelled', 'rolled back', 'refused', 'unfinished', 'failed');
UPDATE mgmt_controlaction SET refusal = CASE
        WHEN reason ~ 'ing is paused( on .*)? by ' THEN 'paused'
        WHEN reason ~ 'ing is changing ' THEN 'cell-busy'
        WHEN reason LIKE '% is asleep and is woken first%' THEN 'cell-asleep'
        WHEN reason LIKE '% has not been judged since %' THEN 'verdict-outdated'
        WHEN reason ~ 'cell [a-z0-9]+ is unstable since ' THEN 'cell-unstable'
        WHEN reason ~ 'cell [a-z0-9]+ is unknown since |^no heartbeats arrive' THEN 'cell-unknown'
        WHEN reason LIKE '% was taken by another controller %' THEN 'lease-lost'
        ELSE 'other' END
    WHERE outcome = 'refused';
ALTER TABLE mgmt_controlaction ENABLE TRIGGER control_action_is_kept;
UPDATE mgmt_tick SET since = at, outcome = CASE
        WHEN said IN ('nothing to do', 'nothing unusual', '0 rows') THEN 'nothing'
        WHEN said LIKE 'waiting for %' THEN 'waiting'
        ELSE 'changed' END;
"""
UNTYPED = """
ALTER TABLE mgmt_controlaction DISABLE TRIGGER control_action_is_kept;
UPDATE mgmt_controlaction SET outcome = CASE outcome
        WHEN 'requested' THEN 'asked' WHEN 'cancelled' THEN 'given up' ELSE outcome END
    WHERE outcome IN ('requested', 'cancelled');
UPDATE mgmt_controlaction SET refusal = '' WHERE refusal <> '';
ALTER TABLE mgmt_controlaction ENABLE TRIGGER control_action_is_kept;
"""
OUTCOMES = ["done", "requested", "cancelled", "rolled back", "refused", "unfinished", "failed"]


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0044_numeric_drift")]

    operations = [
        migrations.AddField(
            "controlaction",
            "refusal",
            models.CharField(
                blank=True,
                choices=[
                    ("paused", "the controller is paused"),
                    ("cell-busy", "another controller changes the cell"),
                    ("cell-unstable", "the cell is unstable"),
                    ("cell-unknown", "the cell's state is unknown"),
                    ("cell-asleep", "the cell is asleep"),
                    ("verdict-outdated", "the cell has not been judged lately"),
                    ("lease-lost", "another controller took the cell meanwhile"),
                    ("other", "the reason has no type"),
                ],
                db_default="",
                default="",
                help_text="Type of a refusal's reason.",
                max_length=16,
            ),
        ),
        migrations.AddField(
            "taskrun",
            "outcome",
            models.CharField(
                choices=[
                    ("changed", "Changed"),
                    ("nothing", "nothing to do"),
                    ("waiting", "Waiting"),
                    ("failed", "Failed"),
                ],
                db_default="nothing",
                default="nothing",
                max_length=7,
            ),
        ),
        migrations.AddField(
            "taskrun",
            "since",
            models.DateTimeField(
                db_default=Now(), help_text="Time of the first of the runs with this outcome that followed each other."
            ),
        ),
        migrations.AlterField("taskrun", "at", models.DateTimeField(help_text="When it last completed.")),
        migrations.AddField(
            "cellverdict",
            "kinds",
            models.JSONField(db_default=[], default=list, help_text="Kinds of the reasons, the most severe first."),
        ),
        migrations.RunSQL(TYPED, UNTYPED),
        migrations.AlterField(
            "controlaction",
            "outcome",
            models.CharField(
                choices=[
                    ("done", "Done"),
                    ("requested", "Requested"),
                    ("cancelled", "Cancelled"),
                    ("rolled back", "Rolled Back"),
                    ("refused", "Refused"),
                    ("unfinished", "Unfinished"),
                    ("failed", "Failed"),
                ],
                max_length=20,
            ),
        ),
        migrations.AddIndex(
            "controlaction", models.Index(fields=["controller", "-id"], name="actions_of_a_controller")
        ),
        migrations.AddConstraint(
            "controlaction",
            models.CheckConstraint(condition=Q(outcome__in=OUTCOMES), name="an_action_has_a_known_outcome"),
        ),
        migrations.AddConstraint(
            "controlaction",
            models.CheckConstraint(
                condition=Q(outcome="refused") & ~Q(refusal="") | ~Q(outcome="refused") & Q(refusal=""),
                name="only_a_refusal_has_a_type_of_reason",
            ),
        ),
        migrations.AddConstraint(
            "taskrun",
            models.CheckConstraint(
                condition=Q(outcome__in=["changed", "nothing", "waiting", "failed"]), name="a_run_has_a_known_outcome"
            ),
        ),
        migrations.CreateModel(
            name="KafkaCheck",
            fields=[
                ("cluster", models.CharField(max_length=20, primary_key=True, serialize=False)),
                ("at", models.DateTimeField(help_text="Time of the check.")),
                (
                    "state",
                    models.CharField(
                        choices=[("healthy", "Healthy"), ("degraded", "Degraded"), ("unreachable", "Unreachable")],
                        max_length=11,
                    ),
                ),
                ("since", models.DateTimeField(help_text="When the cluster entered this state.")),
                ("error", models.CharField(blank=True, help_text="Why no broker answered.", max_length=200)),
                ("brokers", models.JSONField(default=list, help_text="[{id, address, alive}] as of the last answer.")),
                ("partitions", models.PositiveIntegerField(default=0)),
                (
                    "under_replicated",
                    models.PositiveIntegerField(
                        default=0, help_text="Partitions with fewer in-sync replicas than replicas."
                    ),
                ),
                (
                    "leaderless",
                    models.PositiveIntegerField(default=0, help_text="Partitions that nothing can be read from."),
                ),
                (
                    "examples",
                    models.JSONField(default=list, help_text="[topic/partition, ...] of some of these, worst first."),
                ),
            ],
        ),
        migrations.AddIndex(
            "seal", models.Index(condition=Q(lost__gt=0), fields=["-bucket"], name="lossy_seals_by_minute")
        ),
    ]
