"""Number of a tenant's open alerts, for the header of every page."""

from mgmt.models import Alert


def open_alert_count(tenant_id: str) -> int:
    """Count open alerts; acknowledged and snoozed alerts do not count."""
    return Alert.objects.filter(pipe__tenant_id=tenant_id, state=Alert.State.OPENED).count()
