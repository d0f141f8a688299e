"""Send events through ingest: in batches, each event again until it has a final result."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import httpx

from penstock_cli.connection import retry_after_s, unreachable
from penstock_cli.errors import CliError, ExitCode

BATCH: Final = 100
BATCH_BYTES: Final = 512 * 1024
ATTEMPTS: Final = 8
TIMEOUT_S: Final = 30.0
NEW_KEY_WAITS: Final = (1.0, 2.0, 2.0)  # seconds; ingest accepts a new key within about two
_ACCEPTED: Final = 202


class SendResult(NamedTuple):
    """Final result of one event.

    number: from 1, in the order of the input
    status: 0 without a response
    id:     empty if the event was not accepted
    """

    number: int
    status: int
    id: str = ""
    code: str = ""
    detail: str = ""


def lines_of(chunks: Iterable[str]) -> Iterator[bytes]:
    """Yield the events of JSON lines; empty lines are left out."""
    return (line.strip().encode() for line in chunks if line.strip())


def events_of_document(text: str) -> list[bytes]:
    """Return the events of one JSON document: the items of an array, or the value. Raises CliError."""
    try:
        value = json.loads(text)
    except ValueError as exc:
        raise CliError(f"the file is not JSON: {exc}", hint="Name a file with one event per line .ndjson.") from exc
    return (
        [json.dumps(one, ensure_ascii=False).encode() for one in value] if isinstance(value, list) else [text.encode()]
    )


class EventBatches:
    """Sender of events with the API key of a source."""

    def __init__(self, url: str, key: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._url, self._sleep = url, sleep
        self._http = httpx.Client(headers={"Authorization": f"Bearer {key}"}, timeout=TIMEOUT_S)
        self._new_key_waits = list(NEW_KEY_WAITS)

    def send(self, events: Iterable[bytes]) -> Iterator[SendResult]:
        """Yield the result of each event, in order.

        Raises CliError if the whole request is refused, or if ingest cannot be reached. The results of the batch are
        yielded first, so that the ids of its stored events are not lost; later events are not sent.
        """
        for batch in batches(enumerate(events, 1)):
            yield from self._send(batch)

    def _send(self, batch: Sequence[tuple[int, bytes]]) -> Iterator[SendResult]:
        done: dict[int, SendResult] = {}
        failure: CliError | None = None
        due = list(batch)
        for attempt in range(1, ATTEMPTS + 1):
            is_last = attempt == ATTEMPTS
            try:
                response = self._post([body for _, body in due])
                results = results_of(response.status_code, response.content, [number for number, _ in due])
            except httpx.TransportError as exc:
                if is_last:
                    failure = self._unreachable(exc, batch, done)
                    break
                self._sleep(min(0.5 * 2**attempt, 30.0))
                continue
            except CliError as exc:
                failure = exc
                break
            done |= {one.number: one for one in results if is_last or not may_repeat(one.status)}
            due = [(number, body) for number, body in due if number not in done]
            if not due:
                break
            self._sleep(retry_after_s(response.headers, min(0.5 * 2**attempt, 30.0)))
        yield from (done[number] for number, _ in batch if number in done)
        if failure:
            raise failure

    def _unreachable(
        self, exc: httpx.TransportError, batch: Sequence[tuple[int, bytes]], done: dict[int, SendResult]
    ) -> CliError:
        """Add the results of the events that ingest did not answer, and return the error to raise after them."""
        error = unreachable(self._url, exc)
        is_first = batch[0][0] == 1 and not done
        for number, _ in batch:
            done.setdefault(number, SendResult(number, 0, code="unreachable", detail=str(exc) or type(exc).__name__))
        if not is_first:
            error.hint = f"Send only the events without an id again; those after event {batch[-1][0]} were not sent."
        return error

    def _post(self, bodies: Sequence[bytes]) -> httpx.Response:
        """Return the response to a request; 401 is repeated until a key that was just created must be known."""
        headers = {"Content-Type": "application/json" if len(bodies) == 1 else "application/x-ndjson"}
        while True:
            response = self._http.post(self._url, content=b"\n".join(bodies), headers=headers)
            if response.status_code != 401 or not self._new_key_waits:
                break
            self._sleep(self._new_key_waits.pop(0))
        self._new_key_waits.clear()
        return response


def batches(events: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    """Yield the events in batches that are limited in number and bytes; a larger event is a batch alone."""
    batch: list[tuple[int, bytes]] = []
    size = 0
    for one in events:
        if batch and (len(batch) >= BATCH or size + len(one[1]) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += len(one[1])
    if batch:
        yield batch


def may_repeat(status: int) -> bool:
    """Return True for a result after which the event is sent again."""
    return status in (408, 425, 429) or status >= 500


def results_of(status: int, body: bytes, numbers: Sequence[int]) -> list[SendResult]:
    """Return one result per event of a response: of a batch, of one event, or of a request refused as a whole.

    Raises CliError for a key that is not valid.
    """
    try:
        answer: Any = json.loads(body)
    except ValueError:
        answer = {}
    if status == 401:
        raise CliError("the API key of the source is not valid", ExitCode.REFUSED, "Create one on the pipe's page.")
    items = answer.get("items") if isinstance(answer, dict) else None
    if items is not None and len(items) == len(numbers):
        return [_result(number, item.get("status", status), item) for number, item in zip(numbers, items, strict=True)]
    found = answer if isinstance(answer, dict) else {}
    return [_result(number, status, found) for number in numbers]


def _result(number: int, status: int, found: dict[str, Any]) -> SendResult:
    id_ = str(found.get("id", "")) if status == _ACCEPTED else ""
    return SendResult(number, status, id_, str(found.get("code", "")), str(found.get("detail", "")))
