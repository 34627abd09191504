"""Connections: the address to listen on, how many there are, and how long they may be silent."""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from keras_transformer.config import require
from keras_transformer.serving import logs

MOST = 1000  # open connections; further ones are closed at once
LONGEST_SILENCE = 30.0  # seconds until the headers of a request are complete
# Idle connections are kept longer than clients keep them, so that none is closed while a client
# sends a request. Uvicorn's default of 5 seconds is shorter than a long batch.
KEEP_ALIVE = 75


class Connection(AutoHTTPProtocol):
    """A connection of uvicorn's that is closed if no request comes.

    Uvicorn itself closes a connection only if it is idle after an answer: not one that never sends
    a request, nor one that sends its headers byte by byte.
    """

    _silence: asyncio.TimerHandle | None = None
    _is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request, or refuse a connection that is one too many."""
        self._is_refused = len(self.connections) >= MOST
        if self._is_refused:
            transport.abort()
            return
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._silence is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        if not self._is_refused:
            super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Leave the waiting to uvicorn, until the next request begins."""
        self._stop_waiting()
        super().on_response_complete()

    def _wait(self):
        self._silence = self.loop.call_later(LONGEST_SILENCE, self.transport.close)

    def _stop_waiting(self):
        if self._silence:
            self._silence.cancel()
            self._silence = None


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address; port 0 chooses a free port.

    Raises:
        ValueError: If the address is in use or not of this machine.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        found = socket.socket(family, socket.SOCK_STREAM)
        with contextlib.ExitStack() as undo:
            undo.callback(found.close)
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((host, port))
            undo.pop_all()
    except OSError as error:
        raise ValueError(f"host and port must be free, got {host}:{port}: {error}") from error
    return found


def tls_files(certificate: Path | None, key: Path | None) -> dict[str, str]:
    """Return uvicorn's options for HTTPS, or none without a certificate.

    Args:
        certificate: PEM file of the certificates.
        key: PEM file of the private key; None: it is in the same file.

    Raises:
        ValueError: If they cannot be read, or do not belong together.
    """
    if certificate is None:
        require(key is None, "tls_key", key, "given with tls_certificate")
        return {}
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError is one
        given = f"{certificate} and {key}" if key else certificate
        raise ValueError(
            f"tls_certificate and tls_key must be a certificate and its key, got {given}: {error}"
        ) from error
    return {"ssl_certfile": str(certificate)} | ({"ssl_keyfile": str(key)} if key else {})


def run(
    app: FastAPI,
    at: socket.socket,
    patience: float,
    root_path: str = "",
    tls: Mapping[str, str] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then finish the accepted requests.

    Args:
        app: The application from `create_app`.
        at: The socket from `listen`.
        patience: Maximum seconds that the shutdown waits for answers.
        root_path: Path prefix that a proxy strips.
        tls: What `tls_files` returned; None: no HTTPS.
    """
    _allow_files()
    options: dict[str, Any] = dict(
        timeout_graceful_shutdown=math.ceil(patience), root_path=root_path
    )
    options |= dict(timeout_keep_alive=KEEP_ALIVE, access_log=False, ws="none", http=Connection)
    options |= dict(log_config=None, **(tls or {}))
    host, port = at.getsockname()[:2]
    _Server(uvicorn.Config(app, host=host, port=port, **options)).run(sockets=[at])


class _Server(uvicorn.Server):
    """A server that logs its address, and tells its application when it begins to stop."""

    async def startup(self, sockets=None):
        await super().startup(sockets)
        if not self.started:  # the application could not start
            return
        scheme = "https" if self.config.is_ssl else "http"
        host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
        logs.log.info("serving at %s://%s:%d", scheme, host, self.config.port)

    def handle_exit(self, sig, frame):
        service = getattr(self.config.app.state, "service", None)
        if service:
            service.is_stopping = True
        super().handle_exit(sig, frame)


def _allow_files():
    """Allow as many open files as connections need, as far as the system lets us."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows, or a low hard limit
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = max(soft, 2 * MOST)
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
