"""Settings of a server: their ranges."""

import dataclasses

import pytest

from keras_transformer.serving import Settings


def test_the_least_of_each():
    least = dict(
        tokens_per_batch=1, delay=0.0, most_waiting=1, timeout=1e-3, most_characters=1,
        most_bytes=1, most_alternatives=0, slots=1, api_key="x", requests_per_minute=1,
        most_kept_bytes=1, allowed_origins=(), public_url="http://a", keys_file=None,
        glossaries=None,
    )  # fmt: skip
    assert dataclasses.asdict(Settings(**least)) == least
    assert Settings().api_key is None and Settings().requests_per_minute is None


@pytest.mark.parametrize(
    "options",
    [
        dict(tokens_per_batch=0),
        dict(most_characters=0),
        dict(slots=0),
        dict(delay=-0.1),
        dict(timeout=0),
        dict(most_alternatives=-1),
        dict(api_key=""),
        dict(public_url="example.org"),
    ],
    ids=lambda options: next(iter(options)),
)
def test_a_value_below_the_least(options):
    ((name, value),) = options.items()
    with pytest.raises(ValueError, match=f"^{name} must be .*, got {value!r}$"):
        Settings(**options)


def test_pages_of_other_hosts():
    assert Settings().origins == () and Settings(api_key="x").origins == ("*",)
    assert Settings(allowed_origins=("*", "https://a.b")).origins == ("*", "https://a.b")
    with pytest.raises(ValueError, match="allowed_origins must be .*, got 'a.b'"):
        Settings(allowed_origins=("a.b",))


def test_settings_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().timeout = 3


@pytest.mark.parametrize("name", ["most_waiting", "most_bytes", "requests_per_minute"])
def test_settings_out_of_range(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1"):
        Settings(**{name: 0})
