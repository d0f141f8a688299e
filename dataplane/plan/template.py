"""Compiled request template of a destination. Values are always encoded before they are inserted."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from dataplane.causes import Cause
from dataplane.expr import (
    CompiledExpression,
    CostAllowance,
    CostLimitError,
    Duration,
    EvaluationError,
    Timestamp,
    compile_expr,
    time_text,
    to_json,
)
from dataplane.ledger.meta import MessageMeta
from dataplane.plan.about import about
from dataplane.plan.outbound import ascii_value
from dataplane.plan.stage import StageError, decode, encode
from dataplane.spec import RequestTemplate
from dataplane.spec.checks import EXPRESSION_ROOTS
from dataplane.spec.template import parts_of

MAX_BODY_BYTES: Final = 1024 * 1024
MAX_URL_CHARS: Final = 8_000
MAX_HEADER_CHARS: Final = 4_000

_Piece = str | CompiledExpression
_ValueOf = Callable[[CompiledExpression], Any]


class RenderedRequest(NamedTuple):
    """Request rendered for one message. `headers`: whole lines; `body`: None if the template leaves it unchanged."""

    url: str
    headers: list[str]
    body: bytes | None


class CompiledTemplate:
    """Request template, ready to render. Pure, and safe to share between threads; decodes a body at most once."""

    def __init__(self, url: str, template: RequestTemplate) -> None:
        """Compile a template. Cannot fail for a template that parse_pipe_spec accepted."""
        scheme, host, *_ = urlsplit(url)
        self._url, self._base = url, f"{scheme}://{host}"
        self._path = _pieces(template.path) if template.path is not None else None
        self._headers = [(name, _pieces(text)) for name, text in template.headers.items()]
        self._body = compile_expr(template.body, EXPRESSION_ROOTS) if template.body is not None else None
        texts = [piece for pieces in (self._path or (), *(some for _, some in self._headers)) for piece in pieces]
        exprs = [piece for piece in (*texts, self._body) if isinstance(piece, CompiledExpression)]
        self._uses = frozenset(root for expr in exprs for root in expr.uses)

    def __call__(self, meta: MessageMeta, body: bytes) -> RenderedRequest:
        """Render the request for one message. Raises StageError `template`, with the field and what was needed."""
        known = about(meta).meta if "meta" in self._uses else {}
        value_of = partial(_value, self._read(body), known, CostAllowance())
        with _naming("path"):
            url = self._render_url(value_of)
        headers = []
        for name, pieces in self._headers:
            with _naming(f"headers.{name}"):
                headers.append(_line(name, pieces, value_of))
        with _naming("body"):
            return RenderedRequest(url, headers, self._render_body(value_of))

    def _read(self, body: bytes) -> Any:
        if "body" not in self._uses:
            return None
        try:
            return decode(body)
        except StageError as exc:
            raise StageError(Cause.TEMPLATE, exc.detail) from exc

    def _render_url(self, value_of: _ValueOf) -> str:
        if self._path is None:
            return self._url
        path = "".join(_in_path(piece, value_of) for piece in self._path)
        if any(segment in (".", "..") for segment in path.partition("?")[0].split("/")):
            raise EvaluationError("the path must not contain . or .. segments")
        if len(path) > MAX_URL_CHARS:
            raise CostLimitError(f"the path needs at most {MAX_URL_CHARS} characters")
        return self._base + path

    def _render_body(self, value_of: _ValueOf) -> bytes | None:
        if self._body is None:
            return None
        return encode(to_json(value_of(self._body), MAX_BODY_BYTES), "body")


@contextmanager
def _naming(field: str) -> Iterator[None]:
    """Turn every error inside the block into a StageError `template` that names the field."""
    try:
        yield
    except (EvaluationError, CostLimitError) as exc:
        raise StageError(Cause.TEMPLATE, f"{field}: {exc}") from exc
    except UnicodeEncodeError as exc:
        raise StageError(Cause.TEMPLATE, f"{field}: needs text that can be encoded as UTF-8") from exc
    except StageError as exc:
        raise StageError(Cause.TEMPLATE, f"{field}: {exc.detail}") from exc


def _pieces(text: str) -> Sequence[_Piece]:
    return [
        compile_expr(part.text, EXPRESSION_ROOTS) if part.is_expression else part.text for part in parts_of("", text)
    ]


def _value(body: Any, meta: Any, allowance: CostAllowance, expr: CompiledExpression) -> Any:
    """Evaluate an expression for the message; all expressions of a request share one cost allowance."""
    return expr(body, meta, allowance=allowance)


def _in_path(piece: _Piece, value_of: _ValueOf) -> str:
    """Percent-encode a value, so that it stays within one part of the path or query."""
    if isinstance(piece, str):
        return piece
    text = _text(value_of(piece))
    if not text:
        raise EvaluationError("needs a value that is not empty")
    if len(text) > MAX_URL_CHARS:
        raise CostLimitError(f"the path needs at most {MAX_URL_CHARS} characters")
    return quote(text, safe="")


def _line(name: str, pieces: Sequence[_Piece], value_of: _ValueOf) -> str:
    text = "".join(piece if isinstance(piece, str) else _in_header(_text(value_of(piece))) for piece in pieces)
    if len(text) > MAX_HEADER_CHARS:
        raise CostLimitError(f"a header needs at most {MAX_HEADER_CHARS} characters")
    return f"{name}: {text}"


def _in_header(text: str) -> str:
    if len(text) > MAX_HEADER_CHARS:
        raise CostLimitError(f"a header needs at most {MAX_HEADER_CHARS} characters")
    return ascii_value(text.encode())


def _text(value: Any) -> str:
    """Return a value as text. Raises EvaluationError for null, lists and maps, which have no text form."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float() | Decimal():
            return encode(to_json(value, MAX_URL_CHARS), "").decode()
        case Timestamp() | Duration():
            return time_text(value)
    raise EvaluationError("needs a string, a number, a bool or a time")
