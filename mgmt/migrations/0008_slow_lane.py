"""A slow lane for every cell, and whether a lane finds a destination slow."""

from typing import Any

from django.db import migrations, models


def give_slow_lanes(apps: Any, _editor: Any) -> None:
    """Cells of before get one, as new ones have it."""
    for cell in apps.get_model("mgmt", "Cell").objects.all():
        cell.lanes = {"transmit-slow": 1, **cell.lanes}
        cell.version += 1
        cell.save()


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0007_lookup_tables")]

    operations = [
        migrations.AddField(
            "lanesignal",
            "slow",
            models.BooleanField(default=False, help_text="Well but slow: the slow lane sends to it."),
        ),
        migrations.RunPython(give_slow_lanes, migrations.RunPython.noop),
    ]
