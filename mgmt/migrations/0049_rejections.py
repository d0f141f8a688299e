import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mgmt", "0048_event_types"),
    ]

    operations = [
        migrations.CreateModel(
            name="Rejection",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("source", models.CharField(max_length=40)),
                ("event_type", models.CharField(blank=True, max_length=100)),
                ("code", models.CharField(max_length=40)),
                ("pointer", models.CharField(blank=True, max_length=200)),
                ("sender", models.CharField(max_length=16)),
                ("detail", models.CharField(blank=True, max_length=300)),
                ("samples", models.JSONField(default=list)),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField(help_text="Start of the newest minute with a rejected event.")),
                (
                    "pipe",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="rejections", to="mgmt.pipe"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RejectionMinute",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("minute", models.IntegerField(help_text="Minutes since the epoch.")),
                ("events", models.BigIntegerField()),
                (
                    "rejection",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="minutes",
                        to="mgmt.rejection",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="rejection",
            index=models.Index(fields=["last_at"], name="rejections_by_age"),
        ),
        migrations.AddConstraint(
            model_name="rejection",
            constraint=models.UniqueConstraint(
                fields=("pipe", "source", "event_type", "code", "pointer", "sender"), name="one_row_per_rejection"
            ),
        ),
        migrations.AddIndex(
            model_name="rejectionminute",
            index=models.Index(fields=["minute"], name="rejections_by_minute"),
        ),
        migrations.AddConstraint(
            model_name="rejectionminute",
            constraint=models.UniqueConstraint(fields=("rejection", "minute"), name="one_count_per_rejection_minute"),
        ),
    ]
