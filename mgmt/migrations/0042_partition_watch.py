from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0041_revisions_at_once")]

    operations = [
        migrations.CreateModel(
            name="PartitionWatch",
            fields=[
                ("pipe_id", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("checked_at", models.DateTimeField()),
                (
                    "counts",
                    models.JSONField(
                        default=dict, help_text="{bucket: [events on each partition]} of the last minutes."
                    ),
                ),
                (
                    "partition",
                    models.PositiveIntegerField(
                        help_text="The fullest one; empty if too few events arrived.", null=True
                    ),
                ),
                (
                    "lag",
                    models.BigIntegerField(default=0, help_text="Records of that partition that no lane had settled."),
                ),
                (
                    "suspect_since",
                    models.DateTimeField(help_text="It has been hot and harmful since then.", null=True),
                ),
                ("hot_since", models.DateTimeField(help_text="Time at which the alert was due.", null=True)),
                (
                    "well_since",
                    models.DateTimeField(help_text="While the alert is open: all is well since then.", null=True),
                ),
            ],
        ),
    ]
