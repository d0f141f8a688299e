"""How many alerts of a tenant nobody has in hand: what the top of every page says."""

from mgmt.models import Alert


def opened_alerts(tenant_id: str) -> int:
    """Those that are opened; acknowledged and snoozed ones do not ring."""
    return Alert.objects.filter(pipe__tenant_id=tenant_id, state=Alert.State.OPENED).count()
