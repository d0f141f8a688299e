import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import mgmt.ids

LEVELS = [
    ("NONE", "NONE"),
    ("BACKWARD", "BACKWARD"),
    ("BACKWARD_TRANSITIVE", "BACKWARD_TRANSITIVE"),
    ("FORWARD", "FORWARD"),
    ("FORWARD_TRANSITIVE", "FORWARD_TRANSITIVE"),
    ("FULL", "FULL"),
    ("FULL_TRANSITIVE", "FULL_TRANSITIVE"),
]


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0045_typed_outcomes")]

    operations = [
        migrations.CreateModel(
            name="RegistryDefault",
            fields=[
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="registry_default",
                        serialize=False,
                        to="mgmt.tenant",
                    ),
                ),
                ("compatibility", models.CharField(choices=LEVELS, default="BACKWARD", max_length=19)),
            ],
        ),
        migrations.CreateModel(
            name="Subject",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=mgmt.ids.id_maker("subj"), editable=False, max_length=32, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                (
                    "compatibility",
                    models.CharField(
                        blank=True,
                        choices=LEVELS,
                        help_text="Empty: the default of the tenant applies.",
                        max_length=19,
                    ),
                ),
                (
                    "owner",
                    models.CharField(
                        blank=True, help_text="Person or team that answers questions about it.", max_length=80
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "deprecated_at",
                    models.DateTimeField(help_text="Since then no new version is accepted.", null=True),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="subjects", to="mgmt.tenant"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "name"), name="subject_name_once_per_tenant")
                ],
            },
        ),
        migrations.CreateModel(
            name="SchemaText",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("type", models.CharField(choices=[("AVRO", "AVRO"), ("JSON", "JSON")], max_length=8)),
                ("name", models.TextField(blank=True, help_text="Full name of a named Avro type.")),
                (
                    "text",
                    models.TextField(
                        help_text="As it was first registered. Checked by dataplane.schemas before it is stored."
                    ),
                ),
                ("canonical", models.TextField(help_text="Canonical form, with references expanded.")),
                ("fingerprint", models.CharField(help_text="SHA-256 of the canonical form, hex.", max_length=64)),
                ("digest", models.CharField(max_length=64)),
                ("references", models.JSONField(default=list, help_text="[{name, subject, version}, ...]")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="schema_texts", to="mgmt.tenant"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["tenant", "fingerprint"], name="schema_by_fingerprint")],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "number"), name="schema_id_once_per_tenant"),
                    models.UniqueConstraint(fields=("tenant", "digest"), name="schema_stored_once_per_tenant"),
                ],
            },
        ),
        migrations.CreateModel(
            name="SubjectVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("deprecated_at", models.DateTimeField(null=True)),
                (
                    "author",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "schema",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="versions", to="mgmt.schematext"
                    ),
                ),
                (
                    "subject",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="versions", to="mgmt.subject"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("subject", "number"), name="version_number_once_per_subject"),
                    models.UniqueConstraint(fields=("subject", "schema"), name="schema_once_per_subject"),
                ],
            },
        ),
    ]
