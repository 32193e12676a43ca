"""TLS over a connection that is open, and its many ways to fail in words that name an option."""

from __future__ import annotations

import socket
import ssl
from typing import Final

from penstock.client.errors import AccessRefused
from penstock.client.security import Security
from penstock.model.endpoints import Address

# OpenSSL's codes: the certificate has another host name, another IP address.
_NAME_MISMATCHES: Final = (62, 64)
CLOSED: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""The other side closed the connection. Which of the two it is depends on the versions of Python and OpenSSL."""
_NO_TLS: Final = "; does it speak TLS? (option security.protocol)"


def wrapped(plain: socket.socket, address: Address, security: Security) -> ssl.SSLSocket:
    """After the handshake, within the socket's timeout."""
    try:
        return security.tls_context.wrap_socket(plain, server_hostname=address.host)
    except (ConnectionError, *CLOSED):
        raise ConnectionResetError(f"it closed the connection{_NO_TLS}") from None
    except TimeoutError:
        raise ConnectionAbortedError(f"it did not answer in time{_NO_TLS}") from None
    except ssl.SSLError:
        raise
    except ValueError:  # of an address that the cluster gave; SSLCertVerificationError is one as well
        raise ConnectionAbortedError("no certificate can be for that host name") from None


def refusal(error: ssl.SSLError, address: Address, security: Security) -> AccessRefused:
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _NAME_MISMATCHES:
            complaint = (
                f"the certificate of the broker at {address} is for another name: {error.verify_message}"
            )
            return AccessRefused("ssl.endpoint.identification.algorithm", complaint.rstrip("."))
        complaint = f"the certificate of the broker at {address} is not trusted: {error.verify_message}"
        return AccessRefused(security.trust_option, complaint)
    # An alert is the broker's own word, with a name in the standard. All else is OpenSSL's, and differs between its versions.
    alert = (error.reason or "").replace("_", " ").lower().partition(" alert ")[2]
    if "certificate" in alert or "unknown ca" in alert:
        option = "ssl.keystore.location" if security.identity is None else security.identity.option
        return AccessRefused(option, f"the broker at {address} does not take our certificate: {alert}")
    if alert:
        return AccessRefused(
            "security.protocol", f"the broker at {address} refused the TLS handshake: {alert}"
        )
    return AccessRefused("security.protocol", f"what answers at {address} does not speak TLS")
