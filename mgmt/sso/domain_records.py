"""DNS records that show that a domain is a tenant's."""

from typing import Final

import dns.exception
import dns.resolver

TIMEOUT_S: Final = 5.0
LABEL: Final = "_penstock"


def record_name(domain: str) -> str:
    """Return the name of the TXT record that verifies a domain."""
    return f"{LABEL}.{domain}"


def txt_records(domain: str, resolver: dns.resolver.Resolver | None = None) -> list[str]:
    """Return the texts of the record that verifies a domain; none if the name does not exist or DNS does not answer."""
    try:
        answer = (resolver or dns.resolver.Resolver()).resolve(record_name(domain), "TXT", lifetime=TIMEOUT_S)
    except dns.exception.DNSException:
        return []
    return [b"".join(record.strings).decode("utf-8", "replace") for record in answer]
