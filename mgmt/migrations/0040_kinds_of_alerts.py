"""Key alerts by status and response too, and give each pipe a threshold of loss."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0039_destination_health")]

    operations = [
        migrations.AddField(
            "alert",
            "status",
            models.PositiveIntegerField(
                default=0, db_default=0, help_text="HTTP status of the failures; 0 if there is none or they differ."
            ),
        ),
        migrations.AddField(
            "alert",
            "fingerprint",
            models.CharField(
                max_length=12,
                blank=True,
                default="",
                db_default="",
                help_text="Fingerprint of the response (mgmt.alerts.fingerprint); `other` for the alert with the rest.",
            ),
        ),
        migrations.AddField(
            "pipe",
            "loss_threshold_percent",
            models.FloatField(
                default=0,
                db_default=0,
                help_text="Loss of a minute above which its tenant is alerted; 0: any lost message.",
            ),
        ),
        migrations.RemoveConstraint("alert", "one_open_alert_per_destination_and_cause"),
        migrations.AddConstraint(
            "alert",
            models.UniqueConstraint(
                fields=["pipe", "destination", "cause", "status", "fingerprint"],
                condition=~Q(state="resolved"),
                name="one_open_alert_per_kind_of_failure",
            ),
        ),
    ]
