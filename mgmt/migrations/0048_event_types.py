import django.db.models.deletion
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from dataplane.schemas.parse import parse
from dataplane.schemas.types import ParsedSchema, SchemaType


def fill_documents(apps: StateApps, _editor: BaseDatabaseSchemaEditor) -> None:
    """Parse the stored schemas again, those that others refer to first: a reference has a lower number."""
    texts, versions = apps.get_model("mgmt", "SchemaText"), apps.get_model("mgmt", "SubjectVersion")
    for tenant in texts.objects.order_by().values_list("tenant", flat=True).distinct():
        named = {
            (subject, number): schema
            for subject, number, schema in versions.objects.filter(subject__tenant=tenant).values_list(
                "subject__name", "number", "schema"
            )
        }
        parsed: dict[int, ParsedSchema] = {}
        for row in texts.objects.filter(tenant=tenant).order_by("number"):
            references = {one["name"]: parsed[named[one["subject"], one["version"]]] for one in row.references}
            parsed[row.pk] = parse(SchemaType(row.type), row.text, references)
            row.document = parsed[row.pk].document
            row.save(update_fields=["document"])


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0047_schema_registry")]

    operations = [
        migrations.AddField(
            model_name="schematext",
            name="document",
            field=models.TextField(
                default="", help_text="The whole schema with references expanded, which ingest checks events with."
            ),
            preserve_default=False,
        ),
        migrations.RunPython(fill_documents, migrations.RunPython.noop, elidable=True),
        migrations.CreateModel(
            name="SourceEventTypes",
            fields=[
                (
                    "source",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="event_types",
                        serialize=False,
                        to="mgmt.source",
                    ),
                ),
                ("type_from", models.CharField(blank=True, max_length=255)),
                ("version", models.PositiveIntegerField(default=0)),
                ("changed_at", models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.CreateModel(
            name="EventType",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(blank=True, max_length=255)),
                (
                    "source",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="types",
                        to="mgmt.sourceeventtypes",
                    ),
                ),
                (
                    "subject",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="event_types", to="mgmt.subject"
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(fields=("source", "name"), name="event_type_once_per_source")
                ],
            },
        ),
    ]
