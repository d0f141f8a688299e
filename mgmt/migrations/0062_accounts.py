from django.db import migrations, models

# The table of Django's DatabaseCache (settings.CACHES), as `createcachetable` makes it.
CREATE = """
CREATE TABLE mgmt_cache (cache_key varchar(255) NOT NULL PRIMARY KEY, value text NOT NULL, expires timestamptz NOT NULL);
CREATE INDEX mgmt_cache_expires ON mgmt_cache (expires);
"""


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0061_tenant_salts")]

    operations = [
        migrations.RunSQL(CREATE, "DROP TABLE mgmt_cache"),
        migrations.AddField(
            model_name="tenant",
            name="require_mfa",
            field=models.BooleanField(
                db_default=False, default=False, help_text="Members need a second factor to open the console."
            ),
        ),
    ]
