"""TLS contexts of servers: one valid, and the others with one flaw each."""

import ssl
import warnings
from pathlib import Path
from typing import Final, Literal

from tests.support.trust import Trust

Kind = Literal["good-tls", "expired", "self-signed", "wrong-host", "tls-1-0"]
FLAWS: Final[tuple[Kind, ...]] = ("expired", "self-signed", "wrong-host", "tls-1-0")


def server_tls(trust: Trust, folder: Path, kind: Kind) -> ssl.SSLContext:
    """Return the TLS context of a server on 127.0.0.1 that clients with `trust` should accept or refuse."""
    path = folder / f"{kind}.pem"
    path.write_text("".join(_certificate(trust, folder, kind)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    if kind == "tls-1-0":
        context.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the old version is intended
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1
    return context


def _certificate(trust: Trust, folder: Path, kind: Kind) -> tuple[str, str]:
    match kind:
        case "expired":
            return trust.made("localhost", ended=True)
        case "wrong-host":
            return trust.made("elsewhere", host="192.0.2.1")
        case "self-signed":
            nobody = folder / "nobody"
            nobody.mkdir()
            return Trust(nobody, "127.0.0.1").itself()
        case _:
            return trust.made("localhost")
