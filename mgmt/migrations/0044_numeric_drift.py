import functools

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import mgmt.ids


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0043_rollups")]

    operations = [
        migrations.CreateModel(
            name="NumberState",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("pipe_id", models.CharField(max_length=32)),
                ("source", models.CharField(max_length=40)),
                ("block", models.IntegerField()),
                ("watches", models.BinaryField()),
            ],
            options={
                "indexes": [models.Index(fields=["block"], name="oldest_states_of_numbers")],
                "constraints": [
                    models.UniqueConstraint(fields=("pipe_id", "source"), name="one_state_of_numbers_per_source")
                ],
            },
        ),
        migrations.CreateModel(
            name="IgnoredField",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=functools.partial(mgmt.ids.new_id, "field"),
                        editable=False,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("source", models.CharField(max_length=40)),
                ("path", models.CharField(max_length=200)),
                ("at", models.DateTimeField()),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "pipe",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="ignored_fields", to="mgmt.pipe"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("pipe", "source", "path"), name="ignored_field_once_per_source"
                    )
                ],
            },
        ),
    ]
