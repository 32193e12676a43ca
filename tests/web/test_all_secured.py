"""TLS, tokens and client certificates let in at each HTTP service as at all others."""

import json
import ssl
import time
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from penstock.stack.certificates import Authority
from penstock.testing.penstock_broker import PenstockBroker
from tests.web.services import SERVICES, Service


@pytest.mark.parametrize("service", SERVICES, ids=[service.name for service in SERVICES])
def test_a_token_or_a_certificate_lets_in_over_tls(
    service: Service, broker: PenstockBroker, tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "authority")
    server = authority.issue("server", hosts=["127.0.0.1"]).pem()
    client = authority.issue("Alice").pem()
    key = rsa.generate_private_key(65537, 2048)
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    (tmp_path / "keys.json").write_text(json.dumps({"keys": [{**public, "kid": "one", "use": "sig"}]}))
    running = service.start(
        tmp_path / f"secured-{service.name}",
        {
            "listeners": "https://127.0.0.1:0",
            "ssl.keystore.location": str(server),
            "ssl.truststore.location": str(authority.path),
            "ssl.client.authentication": "REQUESTED",
            "authentication.method": "BEARER",
            "oauthbearer.jwks.endpoint.url": (tmp_path / "keys.json").as_uri(),
        },
        broker.bootstrap,
    )

    def status(expires_in: float) -> int:
        claims = {"sub": "ana", "exp": time.time() + expires_in}
        token = jwt.encode(claims, key, algorithm="RS256", headers={"kid": "one"})
        return running.ask("GET", service.get, headers={"Authorization": f"Bearer {token}"}).status

    try:
        assert f"penstock {service.name}: listening on https://127.0.0.1:" in running.log
        running.context = ssl.create_default_context(cafile=authority.path)
        refused = running.ask("GET", service.get)
        assert (refused.status, refused.json()["error_code"]) == (401, service.code(401))
        assert refused.headers["www-authenticate"].startswith("Bearer")
        assert [status(600), status(-600)] == [200, 401]
        running.context.load_cert_chain(client)
        assert running.ask("GET", service.get).status == 200
    finally:
        assert running.close() == 0
    assert "Alice" in running.log
    assert "Traceback" not in running.log
