import django.db.models.deletion
from django.db import migrations, models

from mgmt.tenancy.row_policies import through, without_policy


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0068_saml")]

    operations = [
        migrations.CreateModel(
            name="SourceWebhook",
            fields=[
                (
                    "source",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="webhook",
                        serialize=False,
                        to="mgmt.source",
                    ),
                ),
                ("preset", models.CharField(help_text="Name in dataplane.webhooks.PRESETS.", max_length=40)),
                ("secrets", models.JSONField(default=list)),
                (
                    "headers",
                    models.JSONField(
                        default=list,
                        help_text="Request headers that events keep besides the preset's.",
                    ),
                ),
                ("version", models.PositiveIntegerField(default=0)),
                ("changed_at", models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.RunSQL(
            through("mgmt_sourcewebhook", ("source_id", "mgmt_source", "id")), without_policy("mgmt_sourcewebhook")
        ),
    ]
