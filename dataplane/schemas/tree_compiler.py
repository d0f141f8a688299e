"""Compile the tree of an Avro schema to functions, one for each node. Pure; compiled once per schema."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from dataplane.schemas.avro import AvroType

NodeStep = TypeVar("NodeStep")


class TreeCompiler(ABC, Generic[NodeStep]):
    """Compiler of one schema. Each named record has one function; a recursive record calls its own through a cell."""

    def __init__(self) -> None:
        self._named: dict[str, list[NodeStep]] = {}

    def compile(self, node: AvroType) -> NodeStep:
        """Return the function of a node."""
        match node.kind:
            case "record":
                return self._once(node)
            case "union":
                return self.union(node, [self.compile(one) for one in node.branches])
            case "array":
                return self.array(self.compile(node.inner))
            case "map":
                return self.map(self.compile(node.inner))
        return self.leaf(node)

    def _once(self, node: AvroType) -> NodeStep:
        cell = self._named.get(node.name)
        if cell is None:
            cell = self._named[node.name] = []
            cell.append(self.record(node))
        return cell[0] if cell else self.later(node, cell)

    @abstractmethod
    def record(self, node: AvroType) -> NodeStep:
        """Return the function of a record, whose fields it compiles."""

    @abstractmethod
    def later(self, node: AvroType, cell: list[NodeStep]) -> NodeStep:
        """Return the function of a record inside itself: its own is in `cell` when it is called."""

    @abstractmethod
    def union(self, node: AvroType, branches: Sequence[NodeStep]) -> NodeStep:
        """Return the function of a union."""

    @abstractmethod
    def array(self, item: NodeStep) -> NodeStep:
        """Return the function of an array."""

    @abstractmethod
    def map(self, inner: NodeStep) -> NodeStep:
        """Return the function of a map."""

    @abstractmethod
    def leaf(self, node: AvroType) -> NodeStep:
        """Return the function of a type without inner types."""
