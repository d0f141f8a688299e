"""The tables that grow with each minute of a pipe become partitioned by day; what they hold is carried over."""

import django.contrib.postgres.indexes
from datetime import date, timedelta

from django.db import migrations, models

DAY_MIN = 24 * 60
KEYS = {
    "factrow": ("pipe_id", "bucket", "node", "fact", "detail", "child", "audit_partition"),
    "lagrow": ("pipe_id", "bucket", "node", "way", "audit_partition"),
    "reach": ("pipe_id", "bucket", "topic", "partition"),
    "seal": ("pipe_id", "bucket"),
}
UNIQUE = {
    "factrow": "one_set_per_fact",
    "lagrow": "one_sketch_per_way",
    "reach": "one_reach_per_partition",
    "seal": "sealed_once",
}


def _carry_over(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        for name, keys in KEYS.items():
            table, whole = f"mgmt_{name}", f"mgmt_{name}_whole"
            key = ", ".join(f'"{column}"' for column in keys)
            cursor.execute(f"ALTER TABLE {table} RENAME TO {whole}")
            cursor.execute(
                f"CREATE TABLE {table} (LIKE {whole} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
                " PARTITION BY RANGE (bucket)"
            )
            cursor.execute(f"ALTER TABLE {table} DROP COLUMN id")
            cursor.execute(f"ALTER TABLE {table} ADD PRIMARY KEY ({key})")
            cursor.execute(f"CREATE TABLE {table}_other PARTITION OF {table} DEFAULT")
            cursor.execute(f"SELECT DISTINCT bucket / {DAY_MIN} FROM {whole}")
            for (number,) in cursor.fetchall():
                day = date(1970, 1, 1) + timedelta(days=number)
                cursor.execute(
                    f"CREATE TABLE {table}_{day:%Y%m%d} PARTITION OF {table}"
                    f" FOR VALUES FROM ({number * DAY_MIN}) TO ({(number + 1) * DAY_MIN})"
                )
            columns = ", ".join(f'"{column.name}"' for column in _columns(cursor, table))
            cursor.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {whole}")
            cursor.execute(f"DROP TABLE {whole}")
        cursor.execute(
            "INSERT INTO mgmt_ledgerday (day)"
            f" SELECT DISTINCT date '1970-01-01' + bucket / {DAY_MIN} FROM mgmt_factrow"
        )


def _columns(cursor, table):
    cursor.execute(f"SELECT * FROM {table} LIMIT 0")
    return cursor.description


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0020_destination_tests")]

    operations = [
        migrations.CreateModel(
            name="LedgerDay",
            fields=[
                ("day", models.DateField(primary_key=True, serialize=False)),
                ("closed_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(_carry_over)],
            state_operations=[
                operation
                for name, keys in KEYS.items()
                for operation in (
                    migrations.RemoveConstraint(name, UNIQUE[name]),
                    migrations.RemoveField(name, "id"),
                    migrations.AddField(
                        name, "pk", models.CompositePrimaryKey(*keys, blank=True, editable=False, primary_key=True, serialize=False)
                    ),
                )
            ],
        ),
        *(
            migrations.AddIndex(
                model, django.contrib.postgres.indexes.BrinIndex(fields=["bucket"], name=name, autosummarize=True)
            )
            for model, name in (("factrow", "facts_by_minute"), ("lagrow", "lags_by_minute"), ("seal", "seals_by_minute"))
        ),
    ]
