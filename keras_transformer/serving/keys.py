"""API keys from a file, each with a name, a rate and languages."""

from __future__ import annotations

import secrets
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from keras_transformer.config import check_names, check_types, require


@dataclass(frozen=True)
class Key:
    """An API key, and what it allows.

    Args:
        name: Name in metrics; it is no secret.
        key: The secret that requests send.
        requests_per_minute: Maximum requests per minute with this key; None: no limit.
        languages: Pairs such as "en-de" that it allows; empty: all.

    Raises:
        ValueError: If a value is empty or out of range, or a pair is not of the form "en-de".
    """

    name: str
    key: str
    requests_per_minute: int | None = None
    languages: list[str] = field(default_factory=list)

    def __post_init__(self):
        require(bool(self.name), "name", self.name, "some characters")
        require(bool(self.key), "key", self.key, "some characters")
        limit = self.requests_per_minute
        require(limit is None or limit >= 1, "requests_per_minute", limit, "at least 1")
        require(isinstance(self.languages, list), "languages", self.languages, "a list of pairs")
        for pair in self.languages:
            is_pair = isinstance(pair, str) and all(pair.partition("-")[::2])
            require(is_pair, "languages", pair, "pairs such as en-de")

    def allows(self, source: str, target: str) -> bool:
        """Return whether texts may be translated from `source` to `target`."""
        return not self.languages or f"{source}-{target}" in self.languages


ANYBODY = Key("anybody", "none")  # for servers without keys


class Keys:
    """All keys of a server.

    Args:
        keys: The keys.

    Raises:
        ValueError: If two have the same name or the same key.
    """

    def __init__(self, keys: Iterable[Key]):
        self._keys = [*keys]
        names = [x.name for x in self._keys]
        all_differ = len(names) == len({*names}) == len({x.key for x in self._keys})
        require(all_differ, "keys", names, "of different names and keys")

    @classmethod
    def read(cls, path: Path) -> Keys:
        """Read a TOML file with a table `[[keys]]` for each key, with the fields of `Key`.

        Raises:
            ValueError: If it is not such a file.
            OSError: If it cannot be read.
        """
        try:
            tables = tomllib.loads(path.read_text())
        except ValueError as error:
            raise ValueError(f"{path} must be TOML: {error}") from error
        entries = tables.get("keys", [])
        has_only_keys = {*tables} == {"keys"} and isinstance(entries, list) and bool(entries)
        require(has_only_keys, f"{path}", [*tables], "one table [[keys]] for each key")
        keys = []
        for table in entries:
            check_names(Key, table, f"fields of {path}")
            check_types(Key, {x: y for x, y in table.items() if x != "languages"}, f"{path}: ")
            for name in ("name", "key"):
                require(name in table, f"{path}", f"a key without {name}", "keys with name and key")
            keys.append(Key(**table))
        return cls(keys)

    def with_key(self, key: str | None) -> Keys:
        """Return these keys and `key` under the name "default"; None adds nothing."""
        return self if key is None else Keys([*self._keys, Key("default", key)])

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, given: str) -> Key | None:
        """Return the key that a request sends; None if there is no such key.

        All keys are compared in constant time, so the time of an answer reveals no part of a key.
        """
        encoded = given.encode()
        matches = [x for x in self._keys if secrets.compare_digest(x.key.encode(), encoded)]
        return matches[0] if matches else None
