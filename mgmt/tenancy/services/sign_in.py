"""Services of sign-in by link: a signed link is valid for SIGN_IN_LINK_MAX_AGE_S and for one use."""

from django.conf import settings
from django.core import signing
from django.utils import timezone

from mgmt.models import User

_SALT = "penstock.sign-in"


def make_sign_in_link(*, user: User, base_url: str) -> str:
    """Return a link that signs the user in. It expires at the user's next sign-in of any kind, or with its age."""
    token = signing.dumps([user.pk, _last_sign_in(user)], salt=_SALT)
    return f"{base_url.rstrip('/')}/sign-in/{token}/"


def user_for_sign_in_token(*, token: str) -> User | None:
    """Return the user of a link and mark the link as used; None if it is forged, too old or used.

    The conditional update accepts exactly one of two concurrent uses.
    """
    try:
        pk, last_sign_in = signing.loads(token, salt=_SALT, max_age=settings.SIGN_IN_LINK_MAX_AGE_S)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    user = User.objects.filter(pk=pk, is_active=True, is_service_account=False).first()
    if user is None or _last_sign_in(user) != last_sign_in:
        return None
    used_up = User.objects.filter(pk=pk, last_login=user.last_login).update(last_login=timezone.now())
    return user if used_up else None


def _last_sign_in(user: User) -> str:
    return user.last_login.isoformat() if user.last_login else ""
