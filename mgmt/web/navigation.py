"""Navigation rail of the console: its groups of entries, their counts, and the entry of the current page. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.urls import reverse


@dataclass(frozen=True)
class NavEntry:
    """Link of the rail.

    within:  path prefix of the pages that belong to the entry
    count:   number after the name; None for entries without one
    open:    the count is of something that needs the viewer, as long as it is not 0
    current: value of aria-current: "page" on the page itself, "true" on the pages below it, else ""
    """

    name: str
    url: str
    within: str
    keys: str = ""
    count: int | None = None
    open: bool = False
    current: str = ""


@dataclass(frozen=True)
class NavGroup:
    """Entries under one heading; the first group has none."""

    heading: str
    entries: Sequence[NavEntry]


def rail(
    path: str,
    *,
    has_tenant: bool,
    is_staff: bool,
    may_audit: bool = False,
    may_sso: bool = False,
    pipe_count: Callable[[], int] | None = None,
    open_alerts: Callable[[], int] = lambda: 0,
) -> list[NavGroup]:
    """Return the groups of a viewer's rail on the page at `path`; a user without a tenant has only home."""
    home = reverse("console:home")
    entries = [NavEntry("Home", home, home, "g h")]
    if has_tenant:
        alerts = open_alerts()
        entries += [
            replace(_entry("Pipes", "pipes", "g p"), count=pipe_count() if pipe_count else None),
            _entry("Events", "find", "g e"),
            replace(_entry("Alerts", "alerts", "g a"), count=alerts, open=alerts > 0),
            _entry("Schemas", "subjects", "g s"),
            _entry("Look-up tables", "tables", "g t"),
            _entry("Usage", "usage", "g u"),
            _entry("API tokens", "tokens", "g k"),
            _entry("Members", "members", "g m"),
        ]
    if may_sso:
        entries.append(_entry("Single sign-on", "single_sign_on"))
    if may_audit:
        entries.append(_entry("Audit log", "audit_log", "g l"))
    groups = [NavGroup("", entries)]
    if is_staff:
        groups.append(NavGroup("Staff", [_entry(name, route) for name, route in _STAFF]))
    return _marked(groups, path, home)


_STAFF: Final = (
    ("Status board", "board"),
    ("Control plane", "staff"),
    ("Cells", "cells"),
    ("Scaling", "scaling"),
    ("Releases", "releases"),
    ("Lost messages", "all_losses"),
    ("Tenants", "tenants"),
    ("Quotas", "quotas"),
    ("Usage by tenant", "spending"),
    ("Control audit", "audit"),
)


def _entry(name: str, route: str, keys: str = "") -> NavEntry:
    url = reverse(f"console:{route}")
    return NavEntry(name, url, url, keys)


def _marked(groups: Sequence[NavGroup], path: str, home: str) -> list[NavGroup]:
    """Mark the entry with the longest prefix of the path; home, the prefix of every path, only if it is the page."""
    entries = [entry for group in groups for entry in group.entries]
    fitting = [entry for entry in entries if path.startswith(entry.within) and (entry.within != home or path == home)]
    here = max(fitting, key=lambda entry: len(entry.within), default=None)
    current = "page" if here and here.url == path else "true"
    return [
        replace(group, entries=[replace(one, current=current) if one is here else one for one in group.entries])
        for group in groups
    ]
