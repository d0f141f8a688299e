"""A slow process lane for every cell."""

from typing import Any

from django.db import migrations


def give_slow_process_lanes(apps: Any, _editor: Any) -> None:
    """Cells of before get one, as new ones have it; cells that sleep get it when they wake."""
    for cell in apps.get_model("mgmt", "Cell").objects.exclude(id="ingest"):
        if any(cell.lanes.values()):
            cell.lanes = {"process-slow": 1, **cell.lanes}
            cell.version += 1
            cell.save()


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0033_quotas")]

    operations = [migrations.RunPython(give_slow_process_lanes, migrations.RunPython.noop)]
