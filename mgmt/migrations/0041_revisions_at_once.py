"""Revisions may take all keys at once instead of ramping; pipes keep their author's sample event."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0040_kinds_of_alerts")]

    operations = [
        migrations.AddField(
            model_name="pipe",
            name="sample",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text=(
                    "Sample event of its author, as JSON, for code that sends a first event; empty for a general one."
                ),
                max_length=4_000,
            ),
        ),
        migrations.AddField(
            model_name="piperevision",
            name="at_once",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="True if it takes all keys at once, as a fix of a failing revision does.",
            ),
        ),
    ]
