"""Calls of the API by the generated client: retries while Penstock is busy, and errors as one sentence."""

import inspect
import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx

from penstock_cli.errors import ApiProblemError, CliError, ExitCode
from penstock_cli.profiles import LOG_IN, Profile
from penstock_client.client import AuthenticatedClient, Client

TIMEOUT_S: Final = 60.0
ATTEMPTS: Final = 4
MOST_WAIT_S: Final = 30.0
PAGE: Final = 200
_NOT_STORED: Final = (429, 503)  # Penstock did nothing: any request may be sent again
_HINTS: Final = {
    "not-authenticated": LOG_IN,
    "role-too-low": "Ask an owner of the tenant for the role.",
    "scope-too-low": "Use a token with a wider scope.",
    "token-invalid": LOG_IN,
    "token-expired": LOG_IN,
    "token-revoked": LOG_IN,
    "not-found": "Check the name or id; `penstock status` lists the pipes that this token can see.",
    "revision-conflict": "Run `penstock diff` to see what changed, then apply again.",
    "credential-needed": "Add the credential to the file as ${VARIABLE}, then apply again.",
}
Operation = Callable[..., Any]  # `sync_detailed` of a module in penstock_client.api.operations


class Connection:
    """Signed-in client of one installation."""

    def __init__(self, profile: Profile, sleep: Callable[[float], None] = time.sleep) -> None:
        self.profile, self._sleep = profile, sleep
        options: dict[str, Any] = {"timeout": httpx.Timeout(TIMEOUT_S), "headers": {"User-Agent": "penstock-cli"}}
        self.client: AuthenticatedClient | Client
        if profile.token:
            self.client = AuthenticatedClient(profile.url, profile.token, **options)
        else:
            basic = {"auth": (profile.user, profile.password)}
            self.client = Client(profile.url, httpx_args=basic, **options)

    def call(self, operation: Operation, *args: Any, **kwargs: Any) -> Any:
        """Run an operation and return its parsed response. Raises ApiProblemError, CliError.

        All attempts of a call have one Idempotency-Key, if the API documents the header for the operation.
        """
        if "idempotency_key" in inspect.signature(operation).parameters:
            kwargs = {"idempotency_key": str(uuid.uuid4()), **kwargs}
        response = self.retried(lambda: operation(*args, client=self.client, **kwargs))
        if response.parsed is None and response.status_code != 204:
            raise CliError(
                "the response is not the one of this API", hint="Check the URL, and the release of the server."
            )
        return response.parsed

    def retried(self, send: Callable[[], Any]) -> Any:
        """Return the response of a request, sent again while Penstock is busy. Raises ApiProblemError, CliError."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                response = send()
            except httpx.TransportError as exc:
                raise unreachable(self.profile.url, exc) from exc
            except (KeyError, TypeError, ValueError) as exc:
                reason = f"the response of {self.profile.url} is not the one of this API"
                raise CliError(
                    reason, hint="Check the URL, and that the server has the release of this command."
                ) from exc
            if response.status_code not in _NOT_STORED or attempt == ATTEMPTS:
                break
            self._sleep(retry_after_s(response.headers, 2.0 ** (attempt - 1)))
        if response.status_code >= 400:
            raise problem_of(int(response.status_code), response.content)
        return response

    def pages(self, operation: Operation, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """Yield the rows of all pages of a list."""
        cursor: dict[str, str] = {}
        while True:
            page = self.call(operation, *args, limit=PAGE, **cursor, **kwargs)
            yield from page.results
            if not page.next_:
                return
            cursor = {"cursor": parse_qs(urlsplit(page.next_).query)["cursor"][0]}

    def http(self) -> httpx.Client:
        """Return the signed-in HTTP client, for bodies and streams that the generated client does not have."""
        return self.client.get_httpx_client()


def retry_after_s(headers: Any, default_s: float) -> float:
    """Return the seconds that a response asks to wait, within limits."""
    text = headers.get("retry-after", "")
    return min(float(text) if text.isdigit() else default_s, MOST_WAIT_S)


def unreachable(url: str, exc: Exception) -> CliError:
    """Return the error for a server that does not respond."""
    reason = str(exc) or type(exc).__name__
    return CliError(
        f"cannot reach {url}: {reason}", ExitCode.UNAVAILABLE, "Check the URL and the network, then repeat."
    )


def problem_of(status: int, body: bytes) -> ApiProblemError:
    """Return the error of a problem response (RFC 9457): its detail, its fields, its code, and what to do next."""
    try:
        problem = json.loads(body)
        detail, name = str(problem["detail"]), str(problem.get("code", ""))
        fields = [
            f"{one.get('pointer') or one.get('parameter', '')}: {one['detail']}" for one in problem.get("errors", [])
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        detail, name, fields = f"the server returned {status} without a reason", "", []
    text = detail.rstrip(".") + (f" ({'; '.join(fields)})" if fields and name != "parameter-invalid" else "")
    text += f" [{name or status}]"
    return ApiProblemError(text, status=status, problem=name, code=_exit_code(status), hint=_HINTS.get(name, ""))


def _exit_code(status: int) -> ExitCode:
    if status in (401, 403):
        return ExitCode.REFUSED
    return ExitCode.UNAVAILABLE if status == 429 or status >= 500 else ExitCode.FAILED
