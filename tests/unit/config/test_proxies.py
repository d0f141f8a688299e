"""The client address of a request: as forwarded by a trusted proxy, otherwise the connection's."""

import pytest

from config.proxies import client_address, is_trusted, parse_proxies

PROXIES = parse_proxies("10.0.0.0/8, 2001:db8:ffff::/48")


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "client"),
    [
        pytest.param("203.0.113.9", "", "203.0.113.9", id="no proxy"),
        pytest.param("203.0.113.9", "192.0.2.1", "203.0.113.9", id="no trusted proxy"),
        pytest.param("10.0.0.1", "203.0.113.9", "203.0.113.9", id="one proxy"),
        pytest.param("10.0.0.1", "203.0.113.9, 10.1.2.3", "203.0.113.9", id="two proxies"),
        pytest.param("10.0.0.1", "192.0.2.1, 203.0.113.9", "203.0.113.9", id="made up in front"),
        pytest.param("10.0.0.1", "192.0.2.1, 203.0.113.9, 10.1.2.3", "203.0.113.9", id="made up, two proxies"),
        pytest.param("10.0.0.1", "", "10.0.0.1", id="a proxy that says nothing"),
        pytest.param("10.0.0.1", "unknown", "10.0.0.1", id="no address"),
        pytest.param("10.0.0.1", "203.0.113.9, unknown", "10.0.0.1", id="no address at the end"),
        pytest.param("10.0.0.1", "203.0.113.9:4711", "203.0.113.9", id="with a port"),
        pytest.param("10.0.0.1", "[2001:db8::9]:4711", "2001:db8::9", id="IPv6 with a port"),
        pytest.param("10.0.0.1", "::ffff:203.0.113.9", "203.0.113.9", id="mapped"),
        pytest.param("::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9", id="a mapped proxy"),
        pytest.param("2001:db8:ffff::1", "203.0.113.9", "203.0.113.9", id="an IPv6 proxy"),
        pytest.param("10.0.0.1", "10.0.0.2, 10.0.0.3", "10.0.0.2", id="proxies alone"),
        pytest.param("", "203.0.113.9", "", id="a socket without an address"),
    ],
)
def test_client_address_is_the_last_one_outside_the_trusted_proxies(peer: str, forwarded_for: str, client: str):
    assert client_address(peer, forwarded_for, PROXIES) == client


def test_no_address_is_trusted_unless_configured():
    assert not is_trusted("127.0.0.1", ())
    assert not is_trusted("not an address", PROXIES)
