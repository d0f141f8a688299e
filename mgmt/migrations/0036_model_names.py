"""Rename models to the field's terms. Tables, columns and rows stay as they are."""

from django.db import migrations, models

RENAMED = {
    "Move": "Redrive",
    "Relocation": "PipeMigration",
    "Rating": "CapacityResult",
    "Verdict": "CellVerdict",
    "Tick": "TaskRun",
    "Reach": "HighOffset",
    "Passed": "SettledOffset",
    "Attempt": "DeliveryAttempt",
    "Notice": "Notification",
}


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0035_confirmed_channels")]

    operations = [
        operation
        for old, new in RENAMED.items()
        for operation in (
            migrations.AlterModelTable(old.lower(), table=f"mgmt_{old.lower()}"),
            migrations.RenameModel(old, new),
        )
    ]
    operations += [
        migrations.AlterField(
            "cellverdict",
            "cell",
            models.OneToOneField(
                on_delete=models.PROTECT, primary_key=True, related_name="verdict", serialize=False, to="mgmt.cell"
            ),
        )
    ]
