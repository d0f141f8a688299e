"""A credential belongs to a destination's endpoint: scheme, host, port and token URL, nothing else."""

from typing import Any

import pytest

from dataplane.spec import destination_of, endpoint_of

URL = "https://crm.example.com/in"


def endpoint(url: str = URL, **more: object) -> str:
    return endpoint_of(destination_of({"url": url, **more}))


@pytest.mark.parametrize(
    "url",
    [
        "https://crm.example.com/elsewhere?a=1",
        "https://crm.example.com:443/in",
        "https://CRM.Example.com/in",
        "https://crm.example.com./in",
        "HTTPS://crm.example.com/in",
    ],
)
def test_other_spellings_of_one_origin_are_one_endpoint(url: str):
    assert endpoint(url) == endpoint()


@pytest.mark.parametrize(
    "url",
    [
        "http://crm.example.com/in",
        "https://crm.example.com:8443/in",
        "https://crm.example.org/in",
        "https://crm.example.com.evil.example/in",
        "https://example.com/crm.example.com/in",
    ],
)
def test_another_scheme_host_or_port_is_another_endpoint(url: str):
    assert endpoint(url) != endpoint()


def test_token_url_is_part_of_the_endpoint():
    def oauth2(token_url: str) -> str:
        return endpoint(auth={"type": "oauth2", "token_url": token_url, "client_id": "c"})

    assert oauth2("https://login.example.com/token") == oauth2("https://login.example.com/token")
    assert oauth2("https://login.example.com/token") != oauth2("https://login.example.com/other") != endpoint()


def test_access_key_is_part_of_the_endpoint_of_a_bucket():
    def bucket(access_key_id: str, **more: str) -> str:
        return endpoint(**{"type": "s3", "region": "auto", "access_key_id": access_key_id, **more})

    assert bucket("AKIA1") == bucket("AKIA1", region="eu-central-1", prefix="a/")
    assert bucket("AKIA1") != bucket("AKIA2")
    assert bucket("AKIA1") != endpoint()


def test_host_port_user_tls_and_cas_are_the_endpoint_of_a_database():
    fields = {"type": "postgres", "host": "db.example.com", "database": "shop", "user": "w", "table": "t"}

    def database(**more: Any) -> str:
        return endpoint_of(destination_of(fields | more))

    assert database() == database(host="DB.example.com.", database="other", table="u", timeout_s=3)
    changed = (
        {"host": "db.example.net"},
        {"port": 5433},
        {"user": "v"},
        {"sslmode": "disable"},
        {"ca": "A"},
        {"ca": "B"},
    )
    assert len({database(), *(database(**one) for one in changed)}) == 7


def test_settings_that_do_not_change_the_target_do_not_change_the_endpoint():
    assert endpoint(auth={"type": "bearer"}, timeout_s=3, headers={"X-A": "1"}) == endpoint()
