"""Service that spreads the keys of a pipe: the events of one key are distributed over all partitions."""

from dataplane.spec import PipeSpec, can_spread, keeps_order, parse_pipe_spec, spec_to_builtins
from mgmt.errors import OrderNeededError, UnchangedError
from mgmt.models import Pipe, PipeRevision, User
from mgmt.pipes.services.revisions import current_revision, publish_revision


def spread_keys(*, pipe: Pipe, by: User) -> PipeRevision:
    """Publish the current spec with `spread_key` at each source whose events have keys; it takes all keys at once.

    A ramp would compare nothing, since steps and destinations stay, and would leave the overloaded key for last.
    Raises OrderNeededError if a destination or a sequence needs the order of a key, UnchangedError if no key is left
    to spread, and what publish_revision raises.
    """
    spec = parse_pipe_spec(current_revision(pipe).spec)
    if why := _refusal(spec):
        raise OrderNeededError(why)
    left = [name for name, source in spec.sources.items() if can_spread(source)]
    if not left:
        raise UnchangedError(f"The keys of {pipe.name} are spread already, or its events have none.")
    document = spec_to_builtins(spec)
    for name in left:
        document["sources"][name]["spread_key"] = True
    newest = pipe.revisions.latest("number").number
    action = "revision.keys_spread"
    return publish_revision(pipe=pipe, spec=document, based_on=newest, author=by, at_once=True, action=action)


def why_not_spread(pipe: Pipe) -> str:
    """Return why the keys of the pipe cannot be spread, as a sentence; "" if they can."""
    return _refusal(parse_pipe_spec(current_revision(pipe).spec))


def _refusal(spec: PipeSpec) -> str:
    ordered = sorted(name for name, to in spec.destinations.items() if keeps_order(to))
    if ordered:
        return f"The keys cannot be spread: {', '.join(ordered)} keeps the order of each key. Use a finer key instead."
    numbered = sorted(name for name, source in spec.sources.items() if source.sequence)
    if numbered:
        return f"The keys cannot be spread: the sequence of source {', '.join(numbered)} needs the order of each key."
    return ""
