"""Cookie of a browser that has signed in to an account: its attempts are counted separately from all others."""

from typing import Final

from django.conf import settings
from django.http import HttpResponse

from mgmt.tenancy.services.sign_in_limits import DEVICE_MAX_AGE, new_device

DEVICE_COOKIE: Final = "penstock_device"


def with_device(response: HttpResponse, username: str) -> HttpResponse:
    """Set the device cookie: failed guesses from elsewhere cannot lock the account out in this browser."""
    response.set_cookie(
        DEVICE_COOKIE,
        new_device(username),
        max_age=DEVICE_MAX_AGE,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return response
