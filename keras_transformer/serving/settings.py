"""Settings of the server."""

from __future__ import annotations

from dataclasses import dataclass

from keras_transformer.config import require


@dataclass(frozen=True)
class Settings:
    """Limits and batching of a server.

    Args:
        tokens_per_batch: Number of source tokens at which a batch is full.
        delay: Maximum seconds that a text waits for others while nothing is computed.
        most_waiting: Maximum number of tokens in the queue. If it is full, requests get 429; a
            single request that is larger gets 413.
        slots: Maximum number of replies that a language model writes at once; others wait.
        timeout: Maximum seconds per request; then it gets 504. For an answer that is streamed,
            between its parts.
        most_characters: Maximum characters of text per request; larger ones get 413.
        most_bytes: Maximum bytes per file; larger ones get 413.
        most_alternatives: Maximum number of alternatives that a request may ask for.
        api_key: Key that requests must send; None: no key is needed.
        requests_per_minute: Maximum requests per minute from one address; further ones get 429;
            None: no limit.

    Raises:
        ValueError: If a value is out of range.
    """

    tokens_per_batch: int = 4096
    delay: float = 0.01
    most_waiting: int = 100_000
    slots: int = 8
    timeout: float = 60.0
    most_characters: int = 10_000
    most_bytes: int = 10_000_000
    most_alternatives: int = 8
    api_key: str | None = None
    requests_per_minute: int | None = None

    def __post_init__(self):
        whole = "tokens_per_batch", "most_waiting", "slots", "most_characters", "most_bytes"
        for name in whole:
            require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        require(self.delay >= 0, "delay", self.delay, "at least 0 seconds")
        require(self.timeout > 0, "timeout", self.timeout, "above 0 seconds")
        require(
            self.most_alternatives >= 0, "most_alternatives", self.most_alternatives, "at least 0"
        )
        require(self.api_key != "", "api_key", self.api_key, "some characters, or None")
        limit = self.requests_per_minute
        require(limit is None or limit >= 1, "requests_per_minute", limit, "at least 1, or None")
