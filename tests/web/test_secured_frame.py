"""Tokens and certificates at the frame."""

import json
import ssl
import time
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from penstock.stack.certificates import Authority
from tests.web.services import echo_service


def test_a_token_of_the_identity_provider_lets_in_and_others_do_not(tmp_path: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    other = rsa.generate_private_key(65537, 2048)
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    (tmp_path / "keys.json").write_text(json.dumps({"keys": [{**public, "kid": "one", "use": "sig"}]}))
    service = echo_service(
        tmp_path / "echo",
        {
            "authentication.method": "BEARER",
            "oauthbearer.jwks.endpoint.url": (tmp_path / "keys.json").as_uri(),
            "oauthbearer.expected.issuer": "https://id",
            "oauthbearer.expected.audience": "registry",
        },
    )

    def status(signer: object = key, algorithm: str = "RS256", **changes: object) -> int:
        claims = {"sub": "alice", "iss": "https://id", "aud": "registry", "exp": time.time() + 600, **changes}
        token = jwt.encode(claims, signer, algorithm=algorithm, headers={"kid": "one"})
        return service.ask("GET", "/echo/x", headers={"Authorization": f"Bearer {token}"}).status

    try:
        assert [status(), status()] == [200, 200]
        assert status(other) == 401
        assert status("a shared secret that is long enough", "HS256") == 401
        assert status(iss="https://else") == 401
        assert status(aud="rest") == 401
        assert status(exp=time.time() - 600) == 401
        assert status(sub=7) == 401
        assert service.ask("GET", "/echo/x", headers={"Authorization": "Bearer x"}).status == 401
    finally:
        service.close()


def test_a_client_is_known_by_its_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    made = {
        "authority": authority.path,
        "server": authority.issue("server", hosts=["127.0.0.1"]).pem(),
        "client": authority.issue("Alice").pem(),
    }
    service = echo_service(
        tmp_path / "echo",
        {
            "listeners": "https://127.0.0.1:0",
            "ssl.keystore.location": str(made["server"]),
            "ssl.truststore.location": str(made["authority"]),
            "ssl.client.authentication": "REQUIRED",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/L",
        },
    )
    try:
        service.context = ssl.create_default_context(cafile=made["authority"])
        service.context.load_cert_chain(made["client"])
        assert service.ask("GET", "/echo/x").json()["by"] == "User:alice"
        service.context = ssl.create_default_context(cafile=made["authority"])
        try:
            status = service.ask("GET", "/echo/x").status
        except OSError:
            status = 0
        assert status == 0
    finally:
        service.close()
