"""Fields that an expression reads, also checked against the shape of the events: unknown fields, wrong types. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from dataplane.expr.nodes import (
    BinaryNode,
    CallNode,
    ComprehensionNode,
    ConditionalNode,
    ConstantNode,
    HasNode,
    IndexNode,
    ListNode,
    LogicalNode,
    MapNode,
    NameNode,
    Node,
    SelectNode,
    TextPosition,
    UnaryNode,
)
from dataplane.expr.parse import parse
from dataplane.schemas.shapes import ANY, NULL, NUMBER, OBJECT, Shape, kind_of
from dataplane.stages.paths import Segments

_BODY: Final = "body"
_COMPARED: Final = ("<", "<=", ">", ">=", "==", "!=")
_ARITHMETIC: Final = ("-", "*", "/", "%")
Names = Mapping[str, Shape]


class _Problem(NamedTuple):
    at: TextPosition
    reason: str


def expression_problem(text: str, body: Shape) -> str | None:
    """Return the first field or comparison of a valid expression that fails for every event, with its position.

    None if there is none. A field below `has(...)` is checked up to the one that may be missing.
    """
    first = next(iter(_problems(parse(text), {_BODY: body})), None)
    return f"line {first.at.line}, column {first.at.column}: {first.reason}" if first else None


def fields_read(text: str) -> set[Segments]:
    """Return the paths of the fields of `body` that a valid expression reads; () if it reads the whole body.

    A path ends before the first computed name. A variable of a comprehension is part of the value that it runs over.
    """
    return set(_fields_read(parse(text)))


def _fields_read(node: Node) -> Iterator[Segments]:
    match node:
        case NameNode(name=name) if name == _BODY:
            yield ()
        case SelectNode() | IndexNode():
            path = _path_of(node)
            if path is not None:
                yield path.segments
            else:
                yield from _fields_read(node.operand)
            holder: Node = node
            while isinstance(holder, SelectNode | IndexNode):
                if isinstance(holder, IndexNode):
                    yield from _fields_read(holder.key)
                holder = holder.operand
        case _:
            for part in _parts(node):
                yield from _fields_read(part)


class _FieldPath(NamedTuple):
    segments: Segments
    is_whole: bool  # False after a computed name


def _path_of(node: Node) -> _FieldPath | None:
    """Return the path of a field of `body`; None for other nodes."""
    if isinstance(node, NameNode):
        return _FieldPath((), True) if node.name == _BODY else None
    if not isinstance(node, SelectNode | IndexNode):
        return None
    holder, segment = _path_of(node.operand), _segment(node)
    if holder is None or not holder.is_whole or segment is None:
        return holder._replace(is_whole=False) if holder is not None else None
    return _FieldPath((*holder.segments, segment), True)


def _problems(node: Node, names: Names) -> Iterator[_Problem]:
    """Yield the problems of an expression; `names`: shapes of `body` and of the variables of comprehensions."""
    match node:
        case SelectNode() | IndexNode():
            yield from _path_problems(node, names)
        case BinaryNode(op=op, left=left, right=right):
            yield from _problems(left, names)
            yield from _problems(right, names)
            yield from _operand_problems(node.at, op, left, right, names)
        case ComprehensionNode(over=over, variable=variable, test=test, result=result):
            yield from _problems(over, names)
            elements = _elements_of(_shape_of(over, names))
            for part in (test, result):
                if part is not None:
                    yield from _problems(part, {**names, variable: elements})
        case _:
            for part in _parts(node):
                yield from _problems(part, names)


def _parts(node: Node) -> Sequence[Node]:
    found: Sequence[Node] = ()
    match node:
        case UnaryNode(operand=operand) | HasNode(operand=operand):
            found = [operand]
        case BinaryNode(left=left, right=right):
            found = [left, right]
        case ComprehensionNode(over=over, test=test, result=result):
            found = [over, *(part for part in (test, result) if part is not None)]
        case LogicalNode(parts=parts):
            found = parts
        case ConditionalNode(test=test, yes=yes, no=no):
            found = [test, yes, no]
        case ListNode(items=items):
            found = items
        case MapNode(entries=entries):
            found = [part for entry in entries for part in entry]
        case CallNode(target=target, arguments=arguments):
            found = [*([target] if target is not None else []), *arguments]
    return found


def _path_problems(node: SelectNode | IndexNode, names: Names) -> Iterator[_Problem]:
    inner = list(_problems(node.operand, names))
    if isinstance(node, IndexNode):
        inner += _problems(node.key, names)
    if inner:
        yield from inner
        return
    holder, segment = _shape_of(node.operand, names), _segment(node)
    if segment is not None and holder.child(segment) is None:
        near = holder.nearest(segment)
        hint = f"; did you mean `{near}`?" if near else ""
        yield _Problem(node.at, f"no event type has a field `{segment}` here{hint}")


def _operand_problems(at: TextPosition, op: str, left: Node, right: Node, names: Names) -> Iterator[_Problem]:
    kinds = [_shape_of(one, names).kinds for one in (left, right)]
    if op in _COMPARED and not (kinds[0] & kinds[1]) and (op not in ("==", "!=") or NULL not in kinds[0] | kinds[1]):
        had = [" or ".join(sorted(one)) for one in kinds]
        yield _Problem(at, f"`{op}` compares {had[0]} with {had[1]}, which never fit; convert one of them first")
    if op in _ARITHMETIC and any(one and NUMBER not in one for one in map(_field_kinds, (left, right), (names, names))):
        yield _Problem(at, f"`{op}` needs numbers, and no event type has a number here; convert the value first")


def _field_kinds(node: Node, names: Names) -> frozenset[str]:
    """Return the kinds of a field; empty for other parts of an expression, such as durations."""
    return _shape_of(node, names).kinds if isinstance(node, SelectNode | IndexNode | NameNode) else frozenset()


def _shape_of(node: Node, names: Names) -> Shape:
    """Return the shape of a part; ANY if it depends on more than fields and constants."""
    match node:
        case ConstantNode(value=value):
            return Shape(frozenset((kind_of(value),)))
        case NameNode(name=name):
            return names.get(name, ANY)
        case SelectNode() | IndexNode():
            segment = _segment(node)
            holder = _shape_of(node.operand, names)
            return (holder.child(segment if segment is not None else "*") or ANY) if not holder.is_any else ANY
    return ANY


def _elements_of(shape: Shape) -> Shape:
    """Return the shape that a comprehension's variable has; of an object it is a key."""
    return ANY if OBJECT in shape.kinds or shape.items is None else shape.items


def _segment(node: SelectNode | IndexNode) -> str | None:
    """Return the name or index that is read; None if it is computed."""
    if isinstance(node, SelectNode):
        return node.field
    return str(node.key.value) if isinstance(node.key, ConstantNode) else None
