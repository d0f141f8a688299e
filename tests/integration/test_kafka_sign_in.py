"""Clients sign in to a real broker with a certificate, and with tokens of an OpenID provider; Java clients do, too."""

import base64
import http.server
import json
import os
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from controlplane.kafka_access.acls import role_acls, role_user
from controlplane.kafka_access.apply import KafkaAccess
from controlplane.kafka_access.quotas import QuotaNotSetError, set_consume_quota
from dataplane.kafka_clients import make_admin_client
from localbox.jars import SPARK
from localbox.ports import free_ports
from localbox.services.kafka_tls import ADMIN
from localbox.settings import settings_from
from localbox.spark import ensure_spark_jars
from tests.support.broker import Broker
from tests.support.secured import SignedIn
from tests.support.trust import Trust

AUDIENCE: Final = "kafka"
CLIENT: Final = {"id": "penstock", "secret": "of the client"}
TOPIC: Final = "penstock.c1.ingest.g1"


class TokenServer:
    """OpenID provider: a token for the right client, and the keys by which brokers verify it."""

    def __init__(self) -> None:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
        keys = json.dumps({"keys": [public | {"kid": "1", "alg": "RS256", "use": "sig"}]}).encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200, keys)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                is_known = self.headers["authorization"] == _basic(CLIENT["id"], CLIENT["secret"])
                if not is_known or urllib.parse.parse_qs(body)["grant_type"] != ["client_credentials"]:
                    return self._answer(401, b'{"error": "invalid_client"}')
                now = int(time.time())
                claims = {"sub": role_user("ingest"), "aud": AUDIENCE, "iss": "id", "iat": now, "exp": now + 600}
                token = jwt.encode(claims, key, "RS256", {"kid": "1"})
                made = {"access_token": token, "expires_in": 600, "token_type": "Bearer", "scope": "kafka"}
                return self._answer(200, json.dumps(made).encode())

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _basic(name: str, secret: str) -> str:
    return f"Basic {base64.b64encode(f'{name}:{secret}'.encode()).decode()}"


@pytest.fixture(scope="module")
def provider() -> Iterator[TokenServer]:
    server = TokenServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def trust(tmp_path_factory: pytest.TempPathFactory) -> Trust:
    return Trust(tmp_path_factory.mktemp("clients"))


@pytest.fixture(scope="module")
def ports() -> list[int]:
    return free_ports(2)


@pytest.fixture(scope="module")
def broker(
    tmp_path_factory: pytest.TempPathFactory, provider: TokenServer, trust: Trust, ports: list[int]
) -> Iterator[Broker]:
    """Run the box's secured broker with two more listeners: client certificates, and tokens."""
    mutual, oauth = ports
    var = tmp_path_factory.mktemp("signing-in") / "broker"
    broker = Broker(var, {"PENSTOCK_KAFKA_TLS": "true"})
    tls = broker.tls
    assert tls is not None
    path = var / "kafka" / "server.properties"
    given = dict(line.split("=", 1) for line in path.read_text().splitlines())
    more = {
        "listeners": f"{given['listeners']},MUTUAL://127.0.0.1:{mutual},OAUTH://127.0.0.1:{oauth}",
        "advertised.listeners": f"{given['advertised.listeners']},"
        f"MUTUAL://127.0.0.1:{mutual},OAUTH://127.0.0.1:{oauth}",
        "listener.security.protocol.map": f"{given['listener.security.protocol.map']},MUTUAL:SSL,OAUTH:SASL_SSL",
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.truststore.type": "PEM",
        "listener.name.mutual.ssl.truststore.location": str(trust.ca_file),
        "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
        "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.oauth.oauthbearer.sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer."
        "OAuthBearerLoginModule required;",
        "listener.name.oauth.oauthbearer.sasl.server.callback.handler.class": "org.apache.kafka.common.security."
        "oauthbearer.OAuthBearerValidatorCallbackHandler",
        "listener.name.oauth.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": f"{provider.url}/keys",
        "listener.name.oauth.oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    with path.open("a") as file:  # the last value of a name counts
        file.writelines(f"{name}={value}\n" for name, value in more.items())
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.url}/keys,{provider.url}/token"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {allowed}")
        broker.start()
    try:
        SignedIn(broker.address, tls.settings_of(ADMIN)).make_topic(TOPIC)
        yield broker
    finally:
        broker.kill()


def mutual_settings(broker: Broker, trust: Trust, folder: Path, name: str) -> dict[str, str]:
    assert broker.tls is not None
    key, certificate = trust.made(name)
    files = {"ssl.key.location": folder / "key.pem", "ssl.certificate.location": folder / "certificate.pem"}
    for path, text in zip(files.values(), (key, certificate), strict=True):
        path.write_text(text)
    given = {"security.protocol": "SSL", "ssl.ca.location": str(broker.tls.ca)}
    return given | {name: str(path) for name, path in files.items()}


def oauth_settings(broker: Broker, provider: TokenServer, secret: str) -> dict[str, str]:
    assert broker.tls is not None
    prefix = "sasl.oauthbearer."
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        f"{prefix}method": "oidc",
        f"{prefix}client.id": CLIENT["id"],
        f"{prefix}client.secret": secret,
        f"{prefix}token.endpoint.url": f"{provider.url}/token",
        "ssl.ca.location": str(broker.tls.ca),
    }


@pytest.fixture(scope="module")
def _ingest_may_write(broker: Broker) -> None:
    """Write the ACLs of a role by the code of the command, as the box's administrator."""
    assert broker.tls is not None
    security = broker.tls.settings_of(ADMIN)
    access = KafkaAccess(make_admin_client({"bootstrap.servers": broker.address, "log_level": 3}, security))
    for _ in range(2):  # safe to run twice
        access.set_acls(role_user("ingest"), role_acls("ingest"))


@pytest.mark.usefixtures("_ingest_may_write")
def test_client_certificate_names_the_principal(broker: Broker, trust: Trust, ports: list[int], tmp_path: Path):
    servers = f"127.0.0.1:{ports[0]}"
    ingest = mutual_settings(broker, trust, tmp_path, role_user("ingest"))
    assert not SignedIn(servers, ingest).write(TOPIC)
    stranger = mutual_settings(broker, trust, tmp_path, "stranger")
    assert SignedIn(servers, stranger).write(TOPIC) == "TOPIC_AUTHORIZATION_FAILED"
    without = {name: value for name, value in ingest.items() if "key" not in name and "certificate" not in name}
    assert "bad certificate" in SignedIn(servers, without).refused()


@pytest.mark.usefixtures("_ingest_may_write")
def test_token_of_a_provider_names_the_principal(broker: Broker, provider: TokenServer, ports: list[int]):
    servers = f"127.0.0.1:{ports[1]}"
    assert not SignedIn(servers, oauth_settings(broker, provider, CLIENT["secret"])).write(TOPIC)
    assert "invalid_client" in SignedIn(servers, oauth_settings(broker, provider, "wrong")).refused()


def test_java_client_signs_in_with_the_translated_settings(
    broker: Broker, trust: Trust, ports: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its request needs `ALTER_CONFIGS` on the cluster, which only the administrator has."""
    assert broker.tls is not None
    box = settings_from({"PENSTOCK_VAR": str(tmp_path), "PATH": os.environ["PATH"]}, dotenv=None)
    ensure_spark_jars(box)
    monkeypatch.setenv("PENSTOCK_SPARK_JARS", str(SPARK.place(box.cache)))
    set_consume_quota(broker.address, broker.tls.settings_of(ADMIN), "customer-a", 1_000)
    with pytest.raises(QuotaNotSetError, match="Cluster authorization failed"):
        set_consume_quota(broker.address, broker.tls.settings_of(role_user("web")), "customer-a", None)
    servers, stranger = f"127.0.0.1:{ports[0]}", mutual_settings(broker, trust, tmp_path, "stranger")
    with pytest.raises(QuotaNotSetError, match="Cluster authorization failed"):
        set_consume_quota(servers, stranger, "customer-a", None)
