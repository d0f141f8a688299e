import base64
import secrets

from cryptography.fernet import Fernet
from django.conf import settings
from django.db import migrations, models


def give_salts(apps, schema_editor):
    """Tenants from before get one of their own. Without keys nothing was encrypted yet, so there are none."""
    if not settings.PENSTOCK_FERNET_KEYS:
        return
    fernet = Fernet(settings.PENSTOCK_FERNET_KEYS[0])
    for tenant in apps.get_model("mgmt", "Tenant").objects.filter(mask_salt=""):
        tenant.mask_salt = fernet.encrypt(base64.b64encode(secrets.token_bytes(32))).decode()
        tenant.save(update_fields=["mask_salt"])


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0003_revisions_are_immutable")]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="mask_salt",
            field=models.TextField(
                blank=True, default="", editable=False, help_text="Fernet token; keys the masks that hash."
            ),
            preserve_default=False,
        ),
        migrations.RunPython(give_salts, migrations.RunPython.noop),
    ]
