"""The check at save refuses every spelling of a forbidden address by its text, and accepts public ones."""

import pytest

from dataplane.spec.guard import literal_address, parse_networks, plain_host, why_forbidden
from tests.support.forbidden import hosts


@pytest.mark.parametrize("host", hosts())
def test_every_spelling_of_a_forbidden_address_is_refused(host: str):
    assert why_forbidden(f"https://{host}/") in (
        "needs a public address",
        "needs a public host name",
        "needs a host name or an IP address, got an invalid number",
    )


@pytest.mark.parametrize(
    "url",
    ["https://example.com/in", "https://93.184.216.34/", "https://[2606:4700:4700::1111]:8443/", "https://a1.example/",
     "https://bücher.example/", "http://example.com:8080/x?y=z", "https://3com.com/", "https://1.1.1.1./"],
)  # fmt: skip
def test_public_addresses_are_accepted(url: str):
    assert why_forbidden(url) == ""


def test_https_may_be_required():
    assert why_forbidden("http://example.com/", https_only=True) == "needs https"


@pytest.mark.parametrize("port", [22, 25, 5432, 6379, 9092, 11211, 27017])
def test_ports_of_other_services_are_forbidden(port: int):
    assert why_forbidden(f"http://example.com:{port}/") == f"needs a port that is used for HTTP, got {port}"


def test_networks_allowed_in_the_settings_may_be_saved_and_no_others():
    allowed = parse_networks("127.0.0.0/8")
    assert why_forbidden("http://127.0.0.1:8806/", allowed) == ""
    assert why_forbidden("http://localhost:8806/", allowed) == ""
    assert why_forbidden("http://receiver:8806/", allowed) == ""  # resolved and checked when a connection is opened
    assert why_forbidden("http://10.0.0.1/", allowed)


@pytest.mark.parametrize("host", ["service", "db.internal", "printer.local", "metadata", "nas.lan", "router.home.arpa"])
def test_internal_names_are_forbidden_where_no_internal_network_is_allowed(host: str):
    assert why_forbidden(f"https://{host}/") == "needs a public host name"


@pytest.mark.parametrize("host", ["1.2.3.4.5", "256.1.1.1", "1.2.3.256", "0x100000000", "4294967296", "09.1.1.1", "0x"])
def test_number_that_is_no_address_is_no_host_name_either(host: str):
    assert why_forbidden(f"https://{host}/") != ""


def test_host_is_parsed_as_resolvers_parse_it():
    assert str(literal_address(plain_host("0X7F.1"))) == "127.0.0.1"
    assert str(literal_address(plain_host("\uff11\u3002\uff11"))) == "1.0.0.1"
    assert literal_address(plain_host("example.com.")) is None
