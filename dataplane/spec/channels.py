"""Kinds of notification channels, and what may be shown of their targets. Used by the server and the command line."""

from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

CHATS: Final = ("slack", "teams", "discord")  # incoming webhooks: the URL is the secret
PAGERS: Final = ("pagerduty", "pagerduty-eu")  # Events API v2: the target is an integration key
KINDS: Final = ("mail", "webhook", *CHATS, *PAGERS)
SHOWN_CHARS: Final = 4
LONG: Final = 24  # characters of a target that is long enough for its end to be shown


def has_secret_target(kind: str) -> bool:
    """Return True if who knows the target can post to it: it is stored encrypted, and never shown again."""
    return kind in CHATS or kind in PAGERS


def shown_target(kind: str, target: str) -> str:
    """Return what lists show of a target: all of it; of a secret one the host, the last characters and a digest.

    The digest distinguishes two targets of one kind: URLs of some services all have the same end.
    """
    target = target.strip()
    if not has_secret_target(kind):
        return target
    where = host_of(target) if kind in CHATS else "PagerDuty"
    end = f" …{target[-SHOWN_CHARS:]}" if len(target) >= LONG else ""
    return f"{where}{end} ({sha256(f'{kind} {target}'.encode()).hexdigest()[:8]})"


def host_of(url: str) -> str:
    """Return the host of a URL, for people."""
    try:
        return urlsplit(url).hostname or "invalid URL"
    except ValueError:
        return "invalid URL"
