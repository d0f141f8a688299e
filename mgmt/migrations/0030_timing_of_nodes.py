"""Timing of a node is one row: lags in and out, process durations, and where the time of delivered messages went."""

from django.db import migrations, models

TABLE = "mgmt_lagrow"
KEY = ("pipe_id", "bucket", "node", "audit_partition")
SAME = " AND ".join(f"one.{column} = other.{column}" for column in KEY)
COLUMNS = ("lag_in", "lag_out", "own", "breakdown")


def _join_ways(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        for column in COLUMNS:
            cursor.execute(f"ALTER TABLE {TABLE} ADD COLUMN {column} bytea")
        cursor.execute(
            f"UPDATE {TABLE} one SET lag_out = sketch,"
            f" lag_in = (SELECT other.sketch FROM {TABLE} other WHERE other.way = 'in' AND {SAME})"
            " WHERE way = 'out'"
        )
        cursor.execute(f"DELETE FROM {TABLE} one USING {TABLE} other WHERE one.way = 'in' AND other.way = 'out' AND {SAME}")
        cursor.execute(f"UPDATE {TABLE} SET lag_in = sketch WHERE way = 'in'")
        _drop_key(cursor)
        cursor.execute(f"ALTER TABLE {TABLE} DROP COLUMN way, DROP COLUMN sketch")
        cursor.execute(f"ALTER TABLE {TABLE} ADD PRIMARY KEY ({', '.join(KEY)})")


def _part_ways(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        _drop_key(cursor)
        cursor.execute(f"ALTER TABLE {TABLE} ADD COLUMN way varchar(3), ADD COLUMN sketch bytea")
        key = ", ".join(KEY)
        for way in ("in", "out"):
            cursor.execute(
                f"INSERT INTO {TABLE} ({key}, way, sketch)"
                f" SELECT {key}, '{way}', lag_{way} FROM {TABLE} WHERE way IS NULL AND lag_{way} IS NOT NULL"
            )
        cursor.execute(f"DELETE FROM {TABLE} WHERE way IS NULL")
        cursor.execute(f"ALTER TABLE {TABLE} {', '.join(f'DROP COLUMN {column}' for column in COLUMNS)}")
        cursor.execute(f"ALTER TABLE {TABLE} ALTER COLUMN way SET NOT NULL, ALTER COLUMN sketch SET NOT NULL")
        cursor.execute(f"ALTER TABLE {TABLE} ADD PRIMARY KEY (pipe_id, bucket, node, way, audit_partition)")


def _drop_key(cursor):
    cursor.execute("SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'p'", [TABLE])
    cursor.execute(f'ALTER TABLE {TABLE} DROP CONSTRAINT "{cursor.fetchone()[0]}"')


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0029_report_runs")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(_join_ways, _part_ways)],
            state_operations=[
                migrations.RemoveField("lagrow", "sketch"),
                migrations.RemoveField("lagrow", "way"),
                migrations.AddField(
                    "lagrow", "lag_in", models.BinaryField(help_text="Sketch of lags on arrival.", null=True)
                ),
                migrations.AddField(
                    "lagrow", "lag_out", models.BinaryField(help_text="Sketch of lags on departure.", null=True)
                ),
                migrations.AddField(
                    "lagrow",
                    "own",
                    models.BinaryField(
                        help_text="Sketch of the time between the two, message by message.", null=True
                    ),
                ),
                migrations.AddField(
                    "lagrow",
                    "breakdown",
                    models.BinaryField(
                        help_text="Where the time went of messages that the node delivered.", null=True
                    ),
                ),
                migrations.AlterField(
                    "lagrow",
                    "pk",
                    models.CompositePrimaryKey(*KEY, blank=True, editable=False, primary_key=True, serialize=False),
                ),
            ],
        )
    ]
