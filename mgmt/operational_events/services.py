"""Services of operational events: store one with its change, and check the sources that receive them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.db import connection, transaction

from dataplane.spec import PenstockSource, PipeSpec, SpecError, parse_pipe_spec, wants_event
from mgmt.errors import QuotaExceededError
from mgmt.models import Destination, OperationalEvent, Pipe, PipeRevision, User
from mgmt.operational_events.queries import receiving_pipes
from mgmt.operational_events.types import OPERATIONAL_TYPES, TYPE_OF_ACTION

MOST_PIPES: Final = 5  # of a tenant with such a source: each costs every ingest replica a Kafka consumer


def emit_event(*, type_: str, pipe: Pipe, data: Mapping[str, Any]) -> OperationalEvent | None:
    """Store an operational event in the caller's transaction; return None if no other pipe of the tenant receives any.

    data: JSON values; fields that the type does not have are left out

    Raises KeyError for an unknown type, TransactionManagementError outside of a transaction.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("emit_event() belongs to the transaction of the change")
    fields = OPERATIONAL_TYPES[type_].fields
    if not receiving_pipes(pipe.tenant_id, but=pipe.id).exists():
        return None
    chosen = {name: data[name] for name in fields if name in data}
    return OperationalEvent.objects.create(
        tenant_id=pipe.tenant_id, pipe=pipe, pipe_name=pipe.name, type=type_, data=chosen
    )


def emit_change(*, action: str, pipe: Pipe, target: object, after: Mapping[str, Any]) -> None:
    """Store the operational event of an entry of the audit log, if there is one for its action.

    target: the changed row
    after:  fields of the entry, which contain no secrets
    """
    if (type_ := TYPE_OF_ACTION.get(action)) is None:
        return
    about: dict[str, Any] = {}
    match target:
        case Destination():
            about = {"destination": target.name}
        case PipeRevision():
            about = {"revision": target.number}
    emit_event(type_=type_, pipe=pipe, data={**after, **about})


def check_penstock_sources(tenant_id: str, spec: PipeSpec, pipe_id: str = "") -> None:
    """Raise SpecError for a pattern without a type, a second source of a pipe, or more pipes than a tenant may have.

    The caller holds the tenant's lock, so that two revisions cannot take the same room.
    """
    sources = penstock_sources(spec)
    for name, source in sources.items():
        for number, pattern in enumerate(source.events):
            if not any(wants_event([pattern], type_) for type_ in OPERATIONAL_TYPES):
                reason = f"needs a type of operational events, or the beginning of one, got {pattern}"
                raise SpecError(f"$.sources.{name}.events[{number}]", reason)
    if not sources:
        return
    *_, last = sources
    if len(sources) > 1:
        raise SpecError(f"$.sources.{last}", "is one too many: a pipe has at most one source of type penstock")
    if receiving_pipes(tenant_id, but=pipe_id).count() >= MOST_PIPES:
        reason = f"is one too many: {MOST_PIPES} pipes of a tenant may have a source of type penstock"
        raise SpecError(f"$.sources.{last}", reason)


def check_author_of_penstock_source(author: User, spec: PipeSpec, known: Mapping[str, Any]) -> None:
    """Raise SpecError if a token that is limited to a pipe adds or changes a source with events of all pipes.

    known: the spec that the new one is based on
    """
    if author.grant is None or not author.grant.pipe_id:
        return
    before = penstock_sources(parse_pipe_spec(known))
    for name, source in penstock_sources(spec).items():
        if before.get(name) != source:
            reason = "needs a token without a pipe: the source has events about other pipes of the tenant"
            raise SpecError(f"$.sources.{name}", reason)


def check_room_for_penstock_source(pipe: Pipe, sources: Iterable[Mapping[str, Any]]) -> None:
    """Raise QuotaExceededError if a closed pipe with these sources may not be opened again."""
    is_receiving = any(source.get("type") == "penstock" for source in sources)
    if is_receiving and receiving_pipes(pipe.tenant_id, but=pipe.id).count() >= MOST_PIPES:
        raise QuotaExceededError(f"{MOST_PIPES} open pipes have a source of type penstock. Close one of them first.")


def penstock_sources(spec: PipeSpec) -> dict[str, PenstockSource]:
    """Return the sources of type penstock, by name."""
    return {name: source for name, source in spec.sources.items() if isinstance(source, PenstockSource)}
