"""Needs of the plans of a shadow run, and the values that they mask. Pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from dataplane.plan import compile_plan
from dataplane.plan.masked_fields import MaskedField, masked_fields, masked_outputs
from dataplane.shadow.samples import ANY_DESTINATION
from dataplane.spec import PipeSpec


class PlanNeeds(NamedTuple):
    """Needs of the draft and the live revision.

    problem: why one of them does not compile; "" if both do
    salt:    a step of one of them hashes
    dedup:   the live revision sends events only after their verdict
    """

    problem: str
    salt: bool
    dedup: bool


NO_NEEDS: Final = PlanNeeds("", salt=False, dedup=False)


def plan_needs(draft: PipeSpec, live: PipeSpec) -> PlanNeeds:
    """Return the needs of both plans."""
    try:
        plans = [compile_plan(draft), compile_plan(live)]
    except Exception as exc:  # of any compiler: the control plane checked both, with another release
        return NO_NEEDS._replace(problem=f"a plan does not compile: {exc}")
    return PlanNeeds("", any(plan.needs_salt for plan in plans), plans[1].dedup is not None)


def masks_in_bodies(specs: Sequence[PipeSpec]) -> dict[str, frozenset[MaskedField]]:
    """Return by destination the values that any of the revisions masks, at their paths in its bodies.

    An event may have been sent by any revision. A destination that none of them has gets the masks of all.
    """
    by_steps = {msgspec.json.encode((spec.normalize, spec.enrich, spec.transform)): spec for spec in specs}
    documents = [msgspec.to_builtins(spec) for spec in by_steps.values()]
    received = frozenset().union(*(masked_fields(one) for one in documents))
    names = {name for spec in specs for name in spec.destinations}
    outputs = [masked_outputs(one, names, received) for one in documents]
    found = {name: frozenset().union(*(one[name] for one in outputs)) for name in names}
    found[ANY_DESTINATION] = frozenset().union(received, *found.values())
    return found
