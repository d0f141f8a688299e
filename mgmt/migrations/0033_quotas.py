"""Limits of tenants, and how many events were refused because of them."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0032_credentials_by_endpoint")]

    operations = [
        migrations.CreateModel(
            name="TenantQuota",
            fields=[
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="quota",
                        serialize=False,
                        to="mgmt.tenant",
                    ),
                ),
                ("limits", models.JSONField(default=dict)),
                ("version", models.PositiveIntegerField(default=1)),
                ("changed_at", models.DateTimeField()),
                (
                    "changed_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.AddField(
            "usage",
            "refused",
            models.BigIntegerField(
                default=0, db_default=0, help_text="Events of ingest that were over the tenant's quota."
            ),
        ),
    ]
