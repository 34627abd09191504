"""Strategies that damage small valid files: bytes, lines of text, JSON values."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import strategies as st

DEEP = 3000  # levels of nesting, more than Python's stack has

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from([2**31, 2**63, -(2**63), 10**30, 10**400, 7.5, -0.5, 1e308, 5e-324]),
    st.sampled_from([float("nan"), float("inf"), -float("inf")]),
    st.sampled_from(["", " ", "\0", "../../x", "/etc/passwd", "\ud800", "0", "NaN", "a" * 5000]),
    st.text(max_size=8),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(value: Any, path: tuple = ()) -> list[tuple]:
    """Return the path of each value inside a JSON value, the whole included."""
    found = [path]
    pairs = value.items() if isinstance(value, dict) else ()
    pairs = enumerate(value) if isinstance(value, list) else pairs
    for key, inner in pairs:
        found += places(inner, (*path, key))
    return found


@st.composite
def altered(draw, value: Any, most: int = 3) -> Any:
    """Draw a JSON value in which some values are replaced, left out, doubled or exchanged."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, most))):
        *path, last = draw(st.sampled_from(places(value)[1:] or [(None,)]))
        if last is None:
            return draw(values)
        inside = value
        for key in path:
            inside = inside[key]
        kind = draw(st.sampled_from(("replace", "replace", "drop", "double", "wrap", "number")))
        if kind == "replace":
            inside[last] = draw(values)
        elif kind == "drop":
            del inside[last]
        elif kind == "wrap":
            inside[last] = draw(st.sampled_from(([inside[last]], {"x": inside[last]})))
        elif kind == "number":
            inside[last] = draw(st.integers(-3, 70))
        elif isinstance(inside, list):
            inside.append(copy.deepcopy(inside[last]))
        else:
            inside[draw(st.text(max_size=5))] = copy.deepcopy(inside[last])
    return value


@st.composite
def json_files(draw, value: Any) -> bytes:
    """Draw the bytes of a JSON file: altered values mostly, or damaged text."""
    kind = draw(st.sampled_from(("value", "value", "value", "bytes", "deep", "twice", "other")))
    if kind == "value":
        return json.dumps(draw(altered(value))).encode()
    if kind == "deep":
        begin, end = draw(st.sampled_from((("[", "]"), ('{"a":', "}"))))
        return (begin * DEEP + "1" + end * DEEP).encode()
    if kind == "other":
        return json.dumps(draw(values)).encode()
    text = json.dumps(value)
    if kind == "twice" and isinstance(value, dict) and value:
        key = draw(st.sampled_from(sorted(value)))
        text = f"{text[:-1]}, {json.dumps(key)}: {json.dumps(draw(values))}}}"
        return text.encode()
    return draw(damaged(text.encode()))


@st.composite
def damaged(draw, content: bytes, most: int = 4) -> bytes:
    """Draw bytes that are flipped, cut off, left out, doubled or replaced here and there."""
    for _ in range(draw(st.integers(1, most))):
        begin = draw(st.integers(0, len(content)))
        end = min(len(content), begin + draw(st.sampled_from((0, 1, 2, 4, 8, 40))))
        kind = draw(st.sampled_from(("flip", "replace", "drop", "double", "cut", "huge")))
        if kind == "flip":
            bit = 1 << draw(st.integers(0, 7))
            part = bytes([content[begin] ^ bit]) if begin < len(content) else b""
            content = content[:begin] + part + content[begin + 1 :]
        elif kind == "replace":
            content = content[:begin] + draw(st.binary(max_size=6)) + content[end:]
        elif kind == "drop":
            content = content[:begin] + content[end:]
        elif kind == "double":
            content = content[:end] + content[begin:]
        elif kind == "cut":
            content = content[:begin]
        else:
            large = draw(
                st.sampled_from((b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff" * 8, b"\0" * 8))
            )
            content = content[:begin] + large + content[begin + len(large) :]
    return content


@st.composite
def lines_of(draw, lines: list[str], parts: list[str]) -> bytes:
    """Draw a text file: some of the lines, lines made of hostile parts, and damaged bytes."""
    strange = st.lists(st.one_of(st.sampled_from(parts), st.text(max_size=6)), max_size=6)
    line = st.one_of(st.sampled_from(lines), strange.map("".join))
    ending = draw(st.sampled_from(("\n", "\r\n", "\r", "\u2028")))
    text = ending.join(draw(st.lists(line, max_size=8)))
    content = draw(st.sampled_from((b"", b"", b"\xef\xbb\xbf"))) + text.encode("utf-8", "replace")
    return draw(damaged(content)) if draw(st.integers(0, 3)) == 0 else content
