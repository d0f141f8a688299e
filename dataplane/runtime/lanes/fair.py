"""Fair scheduling: deficit round robin over tenants by measured cost, and round robin over each one's flows. Pure.

Source: M. Shreedhar, G. Varghese: Efficient Fair Queuing using Deficit Round Robin (SIGCOMM 1995). The cost of a piece
of work is known only when it is done, so that a tenant may overdraw its credit by one piece and then waits.
"""

from collections import deque
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

F = TypeVar("F", bound=Hashable)
MOST_DEBT: Final = 20  # quanta: one very expensive piece does not exclude a tenant for long


class _Tenant(Generic[F]):
    __slots__ = ("credit", "flows")

    def __init__(self, credit: float) -> None:
        self.credit = credit
        self.flows: deque[F] = deque()


class FairQueue(Generic[F]):
    """Flows that have work, each of one tenant. Tenants that always have work share the cost by weight.

    A tenant may spend while it has credit, and receives a quantum when its turn comes. A tenant that was idle begins
    with one quantum: credit is not saved.
    """

    def __init__(self, quantum: float, weight: Callable[[str], float] = lambda _tenant: 1.0) -> None:
        """Create an empty queue; `quantum` is the cost that a tenant of weight 1 may spend in a round."""
        self._quantum, self._weight = quantum, weight
        self._tenants: dict[str, _Tenant[F]] = {}
        self._order: deque[str] = deque()

    def __len__(self) -> int:
        return sum(len(tenant.flows) for tenant in self._tenants.values())

    @property
    def tenants(self) -> int:
        """Number of tenants that have work."""
        return len(self._order)

    def add(self, tenant: str, flow: F) -> None:
        """Add a flow that has work. It must not be in the queue."""
        known = self._tenants.get(tenant)
        if known is None:
            known = self._tenants[tenant] = _Tenant(self._quantum * self._weight(tenant))
            self._order.append(tenant)
        known.flows.append(flow)

    def remove(self, tenant: str, flow: F) -> None:
        """Remove a flow that has no more work. Raises KeyError or ValueError if it is not in the queue."""
        known = self._tenants[tenant]
        known.flows.remove(flow)
        if not known.flows:
            del self._tenants[tenant]
            self._order.remove(tenant)

    def next(self) -> tuple[F, float] | None:
        """Return the flow whose turn it is and its tenant's credit; None if no flow has work."""
        if not self._order:
            return None
        while (tenant := self._tenants[self._order[0]]).credit <= 0:
            tenant.credit += self._quantum * self._weight(self._order[0])
            if tenant.credit <= 0:  # still in debt: its turn is over
                self._order.rotate(-1)
        return tenant.flows[0], tenant.credit

    def spent(self, cost: float, *, has_more: bool) -> None:
        """Charge `cost` for the flow that `next` returned last, and requeue the flow if it has more work."""
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
