"""Settings of the server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from keras_transformer.config import require


@dataclass(frozen=True)
class Settings:
    """Limits and batching of a server.

    Args:
        tokens_per_batch: Number of source tokens at which a batch is full.
        delay: Maximum seconds that a text waits for others while a thread or replica is free.
        most_waiting: Maximum number of tokens in the queue. A client may fill half of it, and so
            may the files of all clients. If there is no room, requests get 429; a single request
            of more than half (for language models: of more than all) gets 413.
        slots: Maximum number of replies that a language model writes at once; others wait.
        timeout: Maximum seconds per request; then it gets 504. For a streamed answer, maximum
            seconds between its parts.
        most_characters: Maximum characters of a text in LibreTranslate's API, else 400; in the
            other APIs, of all texts of a request, else 413.
        most_bytes: Maximum bytes of the files of a request, else 413.
        most_kept_bytes: Maximum bytes of all translated files, which are kept for an hour; for a
            new file, the oldest ones are dropped. Also the maximum of the documents that are
            translated in the background (DeepL's API); further ones get 429.
        most_alternatives: Maximum number of alternatives that a request may ask for.
        api_key: Key that requests must send; None: only those of `keys_file`, if any.
        keys_file: File of further keys, see `keys.Keys.read`, read again at SIGHUP; None: no file.
            Without `api_key` and `keys_file`, requests need no key.
        glossaries: Folder in which glossaries of DeepL's API are kept, see
            `kept_glossaries.KeptGlossaries`; None: only in memory.
        allowed_origins: Origins of web pages of other hosts that may use the server, such as
            "https://example.org", or "*" for all; None: all if there are API keys, else none.
        public_url: Address at which clients reach the server, for URLs of translated files; None:
            the address that each request names. Requests from the server's own machine may name
            its host, see `guard.Guard.admit`.
        requests_per_minute: Maximum POST requests per minute from one address; further ones get
            429; None: no limit.

    Raises:
        ValueError: If a value is out of range, or an origin or address is not a URL.
    """

    tokens_per_batch: int = 4096
    delay: float = 0.01
    most_waiting: int = 200_000
    slots: int = 8
    timeout: float = 60.0
    most_characters: int = 10_000
    most_bytes: int = 10_000_000
    most_kept_bytes: int = 200_000_000
    most_alternatives: int = 8
    api_key: str | None = None
    keys_file: Path | None = None
    glossaries: Path | None = None
    allowed_origins: tuple[str, ...] | None = None
    public_url: str | None = None
    requests_per_minute: int | None = None

    def __post_init__(self):
        whole = "tokens_per_batch", "most_waiting", "slots", "most_characters", "most_bytes"
        for name in (*whole, "most_kept_bytes"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        require(self.delay >= 0, "delay", self.delay, "at least 0 seconds")
        require(self.timeout > 0, "timeout", self.timeout, "above 0 seconds")
        require(
            self.most_alternatives >= 0, "most_alternatives", self.most_alternatives, "at least 0"
        )
        require(self.api_key != "", "api_key", self.api_key, "some characters, or None")
        address = "an address such as https://example.org"
        for origin in self.allowed_origins or ():
            require(origin == "*" or _is_url(origin), "allowed_origins", origin, f"* or {address}")
        url = self.public_url
        require(url is None or _is_url(url), "public_url", url, address)
        limit = self.requests_per_minute
        require(limit is None or limit >= 1, "requests_per_minute", limit, "at least 1, or None")

    @property
    def origins(self) -> tuple[str, ...]:
        """Origins of web pages, besides the server's own, that may use the server."""
        default = ("*",) if self.api_key or self.keys_file else ()
        return default if self.allowed_origins is None else self.allowed_origins


def _is_url(text):
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and bool(parts.netloc)
