"""Calls of the API: one Idempotency-Key for all attempts of a call."""

import httpx
import pytest

from penstock_cli.connection import ATTEMPTS, Connection
from penstock_cli.errors import ApiProblemError
from penstock_cli.profiles import Profile
from penstock_client.api.operations import create_lookup_table, get_me
from penstock_client.models.lookup_table_in import LookupTableIn


def test_attempts_of_a_call_share_one_idempotency_key():
    keys: list[str | None] = []

    def busy(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers.get("Idempotency-Key"))
        return httpx.Response(503, json={"detail": "Busy.", "code": "unavailable"})

    connection = Connection(Profile("http://penstock.test", "pst_x"), sleep=lambda _: None)
    connection.client.set_httpx_client(
        httpx.Client(base_url="http://penstock.test", transport=httpx.MockTransport(busy))
    )
    for _ in range(2):
        with pytest.raises(ApiProblemError):
            connection.call(create_lookup_table.sync_detailed, body=LookupTableIn(name="shops", tenant="ten_1"))
    assert len(keys) == 2 * ATTEMPTS
    assert len(set(keys[:ATTEMPTS])) == len(set(keys[ATTEMPTS:])) == 1
    assert None not in keys
    assert keys[0] != keys[-1]
    keys.clear()
    with pytest.raises(ApiProblemError):
        connection.call(get_me.sync_detailed)
    assert set(keys) == {None}
