from django.db import migrations
from django.db.models import F

from dataplane.tables.sealed import salt_place
from mgmt.tenancy.secrets import encrypt, new_mask_salt


def give_salts(apps, schema_editor):
    """Tenants that were made in the admin have no salt. The records of their pipes carry it, and so get a new version."""
    pipes = apps.get_model("mgmt", "Pipe").objects
    for tenant in apps.get_model("mgmt", "Tenant").objects.filter(mask_salt=""):
        tenant.mask_salt = encrypt(new_mask_salt(), salt_place(tenant.id))
        tenant.save(update_fields=["mask_salt"])
        pipes.filter(tenant=tenant).update(version=F("version") + 1)


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0060_invitations")]

    operations = [migrations.RunPython(give_salts, migrations.RunPython.noop)]
