"""Run the server: its socket, HTTPS, and limits on the number and idle time of connections."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import socket
import ssl
import sys
from collections.abc import Hashable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from keras_transformer.config import require
from keras_transformer.serving import logs
from keras_transformer.serving.crowd import Crowd
from keras_transformer.serving.turns import network

MOST = 1000  # maximum number of open connections
OWN_FILES = 64  # open files that the server may have besides those of connections
# Open files for each connection: its socket, one that its request opens (an upload, the pipe of a
# reader), and the socket of another connection that waits to be refused.
FILES = 3
QUEUE = 2048  # connections that wait in the system to be accepted
# Maximum seconds until the headers of a request are complete, and between two reads of an answer.
LONGEST_SILENCE = 30.0
# Bytes of an answer that the system buffers for a client. The buffer accepts more when a third of
# it has been read, so it must be small for a client of some kB/s to be seen reading. The system's
# default grows up to 4 MB.
SENT = 131_072
# Seconds that an idle connection is kept: longer than most clients keep theirs, so that it is not
# closed just when a client sends a request. Uvicorn's default is 5.
KEEP_ALIVE = 75
# Seconds after which a thread releases the interpreter's lock if another thread waits for it. With
# Python's default, 0.005, threads that work on texts delay the event loop and the model more.
SWITCH = 0.001


class Connection(AutoHTTPProtocol):  # type: ignore[valid-type,misc]  # a class that uvicorn chose
    """A connection of uvicorn that is closed if its client neither sends nor reads.

    Uvicorn itself closes a connection only if it is idle after an answer: not one that never sends
    a request, nor one that sends its headers byte by byte, nor one that does not read its answer.

    Args:
        crowd: All connections of the server.
        arguments, options: Arguments of uvicorn's protocols.
    """

    owner: Hashable = None  # the client's network
    _silence: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None
    _is_refused = False

    def __init__(self, *arguments: Any, crowd: Crowd, **options: Any):
        super().__init__(*arguments, **options)
        self._crowd = crowd

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to wait for a request, or refuse the connection if there are too many."""
        self.owner = network((transport.get_extra_info("peername") or ("",))[0])
        self._is_refused = not self._crowd.has_room(self.owner, self.loop.time())
        if self._is_refused:
            transport.abort()
            return
        super().connection_made(transport)
        self._crowd.note(self, self.loop.time())
        # As soon as a part of an answer cannot be sent, writing pauses and a timer starts. (Not 0:
        # TLS would pause with nothing to send.)
        transport.set_write_buffer_limits(high=1)
        if endpoint := transport.get_extra_info("socket"):
            endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SENT)
        self._wait()

    def is_idle(self) -> bool:
        """Return whether the server waits for the client: for a request, or for it to read."""
        cycle = self.cycle
        is_asked = cycle is not None and not cycle.response_complete and not cycle.more_body
        return not is_asked or self.flow.write_paused

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        self._crowd.note(self, self.loop.time())
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._silence is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers, and remove the connection from the crowd."""
        self._stop_waiting()
        self._stop_watching()
        if not self._is_refused:
            self._crowd.leave(self)
            super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Stop waiting for a request; until the next one, uvicorn's keep-alive timer applies."""
        self._stop_waiting()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Pause until the client has read what was sent, and watch whether it reads."""
        super().pause_writing()
        self._watch(math.inf)

    def resume_writing(self) -> None:
        """Continue to write the answer."""
        self._crowd.note(self, self.loop.time())
        self._stop_watching()
        super().resume_writing()

    def _watch(self, before):
        """Close the connection if the client has read nothing of `before` bytes; else check again.

        `before` is the number of unsent bytes at the last check.
        """
        left = self.transport.get_write_buffer_size()
        if left >= before:
            self.transport.abort()
        else:
            self._stall = self.loop.call_later(LONGEST_SILENCE, self._watch, left)

    def _stop_watching(self):
        if self._stall:
            self._stall.cancel()
            self._stall = None

    def _wait(self):
        self._silence = self.loop.call_later(LONGEST_SILENCE, self.transport.close)

    def _stop_waiting(self):
        if self._silence:
            self._silence.cancel()
            self._silence = None


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address; port 0 chooses a free port.

    Raises:
        ValueError: If the address cannot be bound: it is in use, or not one of this machine.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        with contextlib.ExitStack() as undo:
            undo.callback(listener.close)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            undo.pop_all()
    except OSError as error:
        raise ValueError(f"host and port must be free, got {host}:{port}: {error}") from error
    return listener


def tls_files(certificate: Path | None, key: Path | None) -> dict[str, str]:
    """Return uvicorn's options for HTTPS; without a certificate, an empty dictionary.

    Args:
        certificate: PEM file of the certificates.
        key: PEM file of the private key; None: it is in the same file.

    Raises:
        ValueError: If they cannot be read or do not belong together, or a key comes without a
            certificate.
    """
    if certificate is None:
        require(key is None, "tls_key", key, "given with tls_certificate")
        return {}
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError as error:  # or its subclass ssl.SSLError
        files = f"{certificate} and {key}" if key else certificate
        raise ValueError(
            f"tls_certificate and tls_key must be a certificate and its key, got {files}: {error}"
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
        tls: Options from `tls_files`; None: no HTTPS.
    """
    most = _connections()
    options: dict[str, Any] = dict(
        timeout_graceful_shutdown=math.ceil(patience), root_path=root_path
    )
    options |= dict(timeout_keep_alive=KEEP_ALIVE, access_log=False, ws="none")
    # The event loop accepts up to `backlog` connections in one turn before it refuses any, and each
    # of them takes an open file.
    options |= dict(http=partial(Connection, crowd=Crowd(most)), backlog=max(most // 4, 1))
    options |= dict(log_config=None, **(tls or {}))
    host, port = at.getsockname()[:2]
    _Server(uvicorn.Config(app, host=host, port=port, **options)).run(sockets=[at])


class _Server(uvicorn.Server):
    """A server that logs its address, and tells its application when it begins to stop."""

    async def startup(self, sockets=None):
        await super().startup(sockets)
        if not self.started:  # the application could not start
            return
        for at in sockets or ():
            at.listen(QUEUE)
        sys.setswitchinterval(SWITCH)
        # A garbage collection visits all objects, which takes 0.4 s for those of libraries and
        # models alone. Freeze them.
        gc.collect()
        gc.freeze()
        scheme = "https" if self.config.is_ssl else "http"
        host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
        logs.log.info("serving at %s://%s:%d", scheme, host, self.config.port)

    def handle_exit(self, sig, frame):
        service = getattr(getattr(self.config.app, "state", None), "service", None)
        if service:
            service.is_stopping = True
        super().handle_exit(sig, frame)


def _connections():
    """Raise the limit of open files, and return the number of connections that it allows.

    The number is at most `MOST`.
    """
    try:
        import resource
    except ImportError:  # Windows
        return MOST
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OWN_FILES + FILES * MOST
    unlimited = resource.RLIM_INFINITY
    if soft != unlimited and soft < wanted:
        soft = wanted if hard == unlimited else min(wanted, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST if soft == unlimited else min(MOST, max((soft - OWN_FILES) // FILES, 1))
    if most < MOST:
        text = "the limit of %d open files allows %d connections; %d for %d: raise it (ulimit -n)"
        logs.log.warning(text, soft, most, wanted, MOST)
    return most
