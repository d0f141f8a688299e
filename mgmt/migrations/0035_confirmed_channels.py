"""E-mail addresses of alert channels are confirmed; those of members' accounts count as confirmed (decision 0312)."""

from typing import Any

from django.db import migrations, models
from django.db.models import Q
from django.utils import timezone


def confirm_members_addresses(apps: Any, _editor: Any) -> None:
    """Confirm the addresses of members who have signed in; have all others asked, and send them nothing until then."""
    now = timezone.now()
    channels = apps.get_model("mgmt", "AlertChannel").objects.filter(kind="mail")
    users = apps.get_model("mgmt", "User").objects.filter(is_active=True, last_login__isnull=False)
    for row in channels:
        if users.filter(memberships__tenant_id=row.tenant_id, email__iexact=row.target).exists():
            channels.filter(pk=row.pk).update(confirmed_at=now)
        else:
            channels.filter(pk=row.pk).update(confirmation_asked_at=now, confirmation_due_at=now)
    notices = apps.get_model("mgmt", "Notice").objects
    notices.filter(state="due", channel__kind="mail", channel__confirmed_at=None).delete()


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0034_slow_process_lane")]

    operations = [
        migrations.AddField(
            "alertchannel",
            "confirmed_at",
            models.DateTimeField(help_text="When its owner confirmed it; of a mail address only.", null=True),
        ),
        migrations.AddField(
            "alertchannel",
            "confirmation_asked_at",
            models.DateTimeField(help_text="When the newest confirmation was asked for.", null=True),
        ),
        migrations.AddField(
            "alertchannel",
            "confirmation_due_at",
            models.DateTimeField(help_text="When a confirmation mail is to be sent; or none.", null=True),
        ),
        migrations.RunPython(confirm_members_addresses, migrations.RunPython.noop),
        migrations.AddIndex(
            "alertchannel",
            models.Index(
                fields=["confirmation_due_at"],
                condition=Q(confirmation_due_at__isnull=False),
                name="confirmations_due",
            ),
        ),
    ]
