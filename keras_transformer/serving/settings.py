"""Settings of the server."""

from __future__ import annotations

from dataclasses import dataclass

from keras_transformer.config import require


@dataclass(frozen=True)
class Settings:
    """Limits of a server, and its batching.

    Args:
        tokens_per_batch: source tokens of a batch, at which it is full.
        delay: seconds that a text may wait for company while nothing is computed.
        most_waiting: tokens that may wait; more are answered 429, and a request of more 413.
        timeout: seconds until a request is given up, 504.
        most_characters: of a request's texts; more are answered 413.
        most_bytes: of a file, likewise.
        most_alternatives: that a request may ask for.
        api_key: what requests must give; None: nothing.
        requests_per_minute: of one address, beyond which 429; None: any.

    Raises:
        ValueError: on a value out of range.
    """

    tokens_per_batch: int = 4096
    delay: float = 0.01
    most_waiting: int = 100_000
    timeout: float = 60.0
    most_characters: int = 10_000
    most_bytes: int = 10_000_000
    most_alternatives: int = 8
    api_key: str | None = None
    requests_per_minute: int | None = None

    def __post_init__(self):
        for name in ("tokens_per_batch", "most_waiting", "most_characters", "most_bytes"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        require(self.delay >= 0, "delay", self.delay, "at least 0 seconds")
        require(self.timeout > 0, "timeout", self.timeout, "above 0 seconds")
        require(
            self.most_alternatives >= 0, "most_alternatives", self.most_alternatives, "at least 0"
        )
        require(self.api_key != "", "api_key", self.api_key, "some characters, or None")
        limit = self.requests_per_minute
        require(limit is None or limit >= 1, "requests_per_minute", limit, "at least 1, or None")
