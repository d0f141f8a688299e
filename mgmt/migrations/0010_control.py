"""Leases, pauses, verdicts and the audit of the controllers; the audit is only ever added to, and the database sees to it."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


FORWARD = """
CREATE FUNCTION mgmt_control_action_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'control_action_is_kept: what was done stays as it was written' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER control_action_is_kept BEFORE UPDATE OR DELETE ON mgmt_controlaction
    FOR EACH ROW EXECUTE FUNCTION mgmt_control_action_is_kept();
"""
BACKWARD = """
DROP TRIGGER control_action_is_kept ON mgmt_controlaction;
DROP FUNCTION mgmt_control_action_is_kept();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("mgmt", "0009_held_messages"),
    ]

    operations = [
        migrations.CreateModel(
            name="Lease",
            fields=[
                (
                    "cell",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, primary_key=True, serialize=False, to="mgmt.cell"
                    ),
                ),
                (
                    "holder",
                    models.CharField(
                        blank=True,
                        choices=[("provision", "provisioning"), ("deploy", "deploying"), ("scale", "scaling")],
                        max_length=9,
                    ),
                ),
                ("token", models.BigIntegerField(default=0)),
                ("what", models.CharField(blank=True, help_text="What the holder does, in words.", max_length=200)),
                ("taken_at", models.DateTimeField()),
                ("until", models.DateTimeField(help_text="From then on anybody may take it.")),
            ],
        ),
        migrations.CreateModel(
            name="Verdict",
            fields=[
                (
                    "cell",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, primary_key=True, serialize=False, to="mgmt.cell"
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("stable", "Stable"), ("unstable", "Unstable"), ("unknown", "Unknown")], max_length=8
                    ),
                ),
                ("reasons", models.JSONField(default=list, help_text="Sentences; empty for a stable cell.")),
                (
                    "silenced",
                    models.JSONField(
                        default=list, help_text="What would be reasons, were they not caused by a change."
                    ),
                ),
                ("since", models.DateTimeField(help_text="When it took this state.")),
                (
                    "turning",
                    models.DateTimeField(blank=True, help_text="Since when it has looked otherwise.", null=True),
                ),
                ("at", models.DateTimeField(help_text="When it was looked at last.")),
            ],
        ),
        migrations.AddField(
            model_name="cell",
            name="fence",
            field=models.BigIntegerField(default=0),
        ),
        migrations.CreateModel(
            name="ControlAction",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                (
                    "controller",
                    models.CharField(
                        choices=[
                            ("provision", "provisioning"),
                            ("deploy", "deploying"),
                            ("scale", "scaling"),
                            ("person", "a person"),
                        ],
                        max_length=9,
                    ),
                ),
                ("action", models.CharField(max_length=40)),
                ("outcome", models.CharField(max_length=20)),
                ("reason", models.CharField(blank=True, max_length=300)),
                ("detail", models.JSONField(default=dict)),
                (
                    "author",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "cell",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="mgmt.cell",
                    ),
                ),
                (
                    "pipe",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="mgmt.pipe",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["cell", "-id"], name="actions_on_a_cell"),
                    models.Index(fields=["pipe", "-id"], name="actions_on_a_pipe"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Pause",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "controller",
                    models.CharField(
                        choices=[("provision", "provisioning"), ("deploy", "deploying"), ("scale", "scaling")],
                        max_length=9,
                    ),
                ),
                ("reason", models.CharField(max_length=200)),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField(blank=True, help_text="Empty: until somebody ends it.", null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "cell",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="pauses",
                        to="mgmt.cell",
                    ),
                ),
                (
                    "ended_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("controller", "cell"),
                        name="one_open_pause_per_controller_and_cell",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
