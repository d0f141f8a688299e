"""Whose turn it is: deficit round robin over tenants by measured cost, and round robin over the flows of each. Pure.

M. Shreedhar, G. Varghese: Efficient Fair Queuing using Deficit Round Robin (SIGCOMM 1995). What a piece of work costs
is known only when it is done, so a tenant may go into debt by one piece, and waits for it.
"""

from collections import deque
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

F = TypeVar("F", bound=Hashable)
MOST_DEBT: Final = 20  # quanta: one very dear piece does not keep a tenant out for ever


class _Tenant(Generic[F]):
    __slots__ = ("credit", "flows")

    def __init__(self, credit: float) -> None:
        self.credit = credit
        self.flows: deque[F] = deque()


class FairQueue(Generic[F]):
    """Flows that have work, each of one tenant. Of tenants that always have work each gets its share of the cost.

    A tenant may spend while it has credit, and is given a quantum when its turn comes. A tenant that has had nothing to
    do begins with one quantum: nobody saves up.
    """

    def __init__(self, quantum: float, weight: Callable[[str], float] = lambda _tenant: 1.0) -> None:
        """`quantum`: what a tenant of weight 1 may spend in a round."""
        self._quantum, self._weight = quantum, weight
        self._tenants: dict[str, _Tenant[F]] = {}
        self._order: deque[str] = deque()

    def __len__(self) -> int:
        return sum(len(tenant.flows) for tenant in self._tenants.values())

    @property
    def tenants(self) -> int:
        """How many have work."""
        return len(self._order)

    def add(self, tenant: str, flow: F) -> None:
        """The flow, which is not in here, has work now."""
        known = self._tenants.get(tenant)
        if known is None:
            known = self._tenants[tenant] = _Tenant(self._quantum * self._weight(tenant))
            self._order.append(tenant)
        known.flows.append(flow)

    def remove(self, tenant: str, flow: F) -> None:
        """The flow has no work any more."""
        known = self._tenants[tenant]
        known.flows.remove(flow)
        if not known.flows:
            del self._tenants[tenant]
            self._order.remove(tenant)

    def next(self) -> tuple[F, float] | None:
        """The flow whose turn it is, and what its tenant may spend; None if nobody has work."""
        if not self._order:
            return None
        while (tenant := self._tenants[self._order[0]]).credit <= 0:
            tenant.credit += self._quantum * self._weight(self._order[0])
            if tenant.credit <= 0:  # still in debt: its turn is over
                self._order.rotate(-1)
        return tenant.flows[0], tenant.credit

    def spent(self, cost: float, *, has_more: bool) -> None:
        """What the flow that `next` named last has cost, and whether it has more work."""
        name = self._order[0]
        tenant = self._tenants[name]
        if has_more:
            tenant.flows.rotate(-1)
        else:
            tenant.flows.popleft()
            if not tenant.flows:
                del self._tenants[name]
                self._order.popleft()
                return
        tenant.credit = max(tenant.credit - cost, -MOST_DEBT * self._quantum)
        if tenant.credit <= 0:
            self._order.rotate(-1)
