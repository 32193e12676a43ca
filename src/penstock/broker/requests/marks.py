"""The proof in the mark of a request that a broker passes on: that a broker of this cluster made it.

Where an authorizer, or the name by which brokers log in, tells brokers from clients, no proof is looked at. Where neither does
(certificates, tokens or tickets without an authorizer), clients may come in by the brokers' own listener: they could write any
mark. So brokers have a key in the metadata store, which clients do not see, and the mark is signed with it. Brokers whose
listener asks nobody who they are need none: there everybody is the same.
"""

import hashlib
import hmac
from typing import Final

PROOF_BYTES: Final = 16


class Marks:
    def __init__(self, key: bytes = b"") -> None:
        """An empty key: there are no proofs, and none is asked for."""
        self._key = key

    @property
    def must_be_proven(self) -> bool:
        return bool(self._key)

    def proof(self, asked_by: str) -> str:
        """`asked_by` is principal and host, as they stand in the mark."""
        return hmac.new(self._key, asked_by.encode(), hashlib.sha256).digest()[:PROOF_BYTES].hex()

    def is_proof(self, proof: str, asked_by: str) -> bool:
        return hmac.compare_digest(proof.encode(), self.proof(asked_by).encode())
