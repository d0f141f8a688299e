"""The address guard: public IPv4 and 2000::/3 without special-purpose blocks, and nothing else."""

import pytest

from dataplane.spec.guard import may_connect, parse_networks

FORBIDDEN = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.254 127.0.0.1 127.1.2.3 127.255.255.255
169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.168.0.1 192.168.255.255 192.0.0.1
192.0.0.8 192.0.0.170 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 168.63.129.16
224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1 ::10.0.0.1 ::ffff:127.0.0.1
::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:192.168.1.1 ::ffff:0:0 ::ffff:7f00:1 ::ffff:100.64.0.1
::ffff:168.63.129.16 ::8.8.8.8 64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254 64:ff9b::c0a8:1
64:ff9b:1::8.8.8.8 64:ff9b:1::1 2002:7f00:1:: 2002:7f00:0001::1 2002:a00:1:: 2002:a9fe:a9fe:: 2002:c0a8:101::1
2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:10::1 2001:20::1 2001:2::1 2001:db8::1 2001:1ff:ffff::1 100::1
3fff::1 3fff:fff::1 5f00::1 fc00::1 fd00::1 fd12:3456:789a::1 fdff:ffff::1 fe80::1 fe80::1%eth0 fe80::1%1
febf::1 fec0::1 feff::1 ff02::1 ff0e::1 ff05::1:3 192.31.196.1 192.52.193.1 192.175.48.1 2002:808:808::1
2620:4f:8000::1 64:ff9b::8.8.8.8 ::ffff:8.8.8.8 ::ffff:0:808:808 1::1 1fff::1 4000::1 8000::1 0100::1 2001:4::1
2001:1::1 2001:3::1
""".split()  # noqa: SIM905 (a table of addresses reads better)
ALLOWED = """
1.1.1.1 8.8.8.8 93.184.216.34 100.63.255.255 100.128.0.1 172.15.255.255 172.32.0.1 192.167.255.255
198.17.255.255 198.20.0.1 223.255.255.255 168.63.129.15 2606:4700:4700::1111 2a00:1450:4001:81b::200e
2400:cb00::1 2001:200::1 2001:4860:4860::8888 3ffe::1 2620:4f:7fff::1 1.0.0.0 223.255.255.255
""".split()  # noqa: SIM905 (a table of addresses reads better)


def test_forbidden_addresses_cover_at_least_sixty_forms():
    assert len(set(FORBIDDEN)) >= 60


@pytest.mark.parametrize("address", FORBIDDEN)
def test_non_public_address_is_refused(address: str):
    assert not may_connect(address)


@pytest.mark.parametrize("address", ALLOWED)
def test_public_address_is_allowed(address: str):
    assert may_connect(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "fd12::1"])
def test_network_named_in_the_settings_is_allowed(address: str):
    assert may_connect(address, parse_networks("127.0.0.0/8, fd00::/8"))


@pytest.mark.parametrize("address", ["10.0.0.1", "::1", "169.254.169.254"])
def test_allowing_one_network_allows_no_other(address: str):
    assert not may_connect(address, parse_networks("127.0.0.0/8, fd00::/8"))


@pytest.mark.parametrize("host", ["localhost", "2130706433", "0x7f.1", "127.1", "", "\uff11\uff12\uff17.0.0.1"])
def test_host_that_is_no_literal_address_is_an_error_and_never_allowed(host: str):
    with pytest.raises(ValueError, match=r"."):
        may_connect(host)
