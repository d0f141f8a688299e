"""The staff's view of all rows."""

from django.conf import settings
from django.http import HttpRequest


def environment_label(_request: HttpRequest) -> tuple[str, str]:
    """The label at the top of every admin page, red where a mistake costs something."""
    return (settings.PENSTOCK_ENV, "danger" if settings.PRODUCTION else "info")
