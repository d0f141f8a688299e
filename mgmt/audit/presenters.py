"""Entries of the audit log as sentences and lines of changed fields. Pure."""

from typing import Any, NamedTuple

from mgmt.audit.actions import sentence
from mgmt.audit.models import AuditEntry


class ChangedField(NamedTuple):
    """Changed field with its values as text; "" on the side that has none."""

    field: str
    before: str
    after: str


class EntryLine(NamedTuple):
    """Entry as lists show it."""

    row: AuditEntry
    sentence: str
    changes: list[ChangedField]


def entry_line(row: AuditEntry) -> EntryLine:
    """Return the line of an entry."""
    names = dict.fromkeys((*row.before, *row.after))
    changes = [ChangedField(_label(name), _side(row.before, name), _side(row.after, name)) for name in names]
    return EntryLine(row, sentence_of(row), changes)


def sentence_of(row: AuditEntry) -> str:
    """Return an entry as a sentence."""
    has_pipe = row.pipe is not None and row.target_kind != "pipe"
    target = row.target_name or row.target_id
    return sentence(row.action, actor=actor_of(row), target=target, pipe=row.pipe.name if row.pipe and has_pipe else "")


def actor_of(row: AuditEntry) -> str:
    """Return the actor in words."""
    match row.actor_kind:
        case AuditEntry.ActorKind.TOKEN:
            return f"{row.actor} (token {row.token_name})"
        case AuditEntry.ActorKind.STAFF:
            return f"{row.actor} (staff)"
    return row.actor


def _label(name: str) -> str:
    return name.replace("_", " ")


def _side(values: dict[str, Any], name: str) -> str:
    return _text(values[name]) if name in values else ""


def _text(value: Any) -> str:
    match value:
        case None | "" | [] | {}:
            return "none"
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(_text, value))
        case dict():
            return ", ".join(f"{key or 'all'}: {_text(one)}" for key, one in value.items())
    return str(value)
