from django.db import migrations, models

_TABLE = """
CREATE TABLE mgmt_piperollup (
    pipe_id varchar(32) NOT NULL,
    length smallint NOT NULL CHECK (length >= 0),
    bucket integer NOT NULL,
    is_final boolean NOT NULL,
    version integer NOT NULL CHECK (version >= 0),
    checked_at timestamptz NULL,
    accepted bigint NOT NULL,
    delivered bigint NOT NULL,
    undelivered bigint NOT NULL,
    lost bigint NOT NULL,
    lag_keys bytea NULL,
    lag_counts bytea NULL,
    lag_min bigint NULL,
    lag_max bigint NULL,
    PRIMARY KEY (pipe_id, length, bucket)
) PARTITION BY RANGE (bucket)
"""


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0042_partition_watch")]

    operations = [
        migrations.CreateModel(
            name="RollupMark",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("since", models.IntegerField()),
                ("until", models.IntegerField()),
            ],
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(_TABLE, "DROP TABLE mgmt_piperollup"),
                migrations.RunSQL("CREATE TABLE mgmt_piperollup_other PARTITION OF mgmt_piperollup DEFAULT", ""),
            ],
            state_operations=[
                migrations.CreateModel(
                    name="PipeRollup",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "pipe_id", "length", "bucket", blank=True, editable=False, primary_key=True, serialize=False
                            ),
                        ),
                        ("pipe_id", models.CharField(max_length=32)),
                        ("length", models.PositiveSmallIntegerField(help_text="Minutes of the block.")),
                        (
                            "bucket",
                            models.IntegerField(help_text="First bucket of the block, a multiple of its length."),
                        ),
                        (
                            "is_final",
                            models.BooleanField(
                                default=False, help_text="The sums are complete; false again after a late fact."
                            ),
                        ),
                        (
                            "version",
                            models.PositiveIntegerField(
                                default=0, help_text="Number of times that late facts arrived."
                            ),
                        ),
                        (
                            "checked_at",
                            models.DateTimeField(
                                help_text="Last time at which the block could not be added up.", null=True
                            ),
                        ),
                        ("accepted", models.BigIntegerField(default=0)),
                        ("delivered", models.BigIntegerField(default=0)),
                        ("undelivered", models.BigIntegerField(default=0)),
                        ("lost", models.BigIntegerField(default=0)),
                        ("lag_keys", models.BinaryField(null=True)),
                        ("lag_counts", models.BinaryField(null=True)),
                        ("lag_min", models.BigIntegerField(null=True)),
                        ("lag_max", models.BigIntegerField(null=True)),
                    ],
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="piperollup",
            index=models.Index(
                condition=models.Q(("is_final", False)), fields=["length", "checked_at"], name="open_rollups"
            ),
        ),
        migrations.AddIndex(
            model_name="factrow",
            index=models.Index(
                condition=models.Q(("fact__in", ["parked", "held", "redriven"])),
                fields=["pipe_id", "bucket"],
                name="facts_of_waiting_units",
            ),
        ),
        migrations.AddIndex(
            model_name="seal",
            index=models.Index(
                condition=models.Q(("lost__gt", 0)), fields=["pipe_id", "bucket"], name="seals_with_losses"
            ),
        ),
    ]
