"""Foreign translation memories: damaged XML, entities, deep nesting, other encodings."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keras_transformer.data.text_files import read_pairs
from tests.data.files import PAIRS, tmx
from tests.fuzz.mutations import damaged
from tests.fuzz.outcome import fuzz, outcome

pytestmark = pytest.mark.once("reads text; no tensors")

SECRET = "a line of a file that only the reader may see"
BOMB = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 50}">' for i in range(9))
HEADERS = [
    f'<!DOCTYPE tmx [<!ENTITY e0 "a">{BOMB}]>',
    '<!DOCTYPE tmx [<!ENTITY e1 SYSTEM "secret.txt">]>',
    '<!DOCTYPE tmx [<!ENTITY % e SYSTEM "secret.txt"> %e;]>',
    '<!DOCTYPE tmx SYSTEM "secret.txt">',
    '<!DOCTYPE tmx [<!ATTLIST tuv xml:lang CDATA "en">]>',
]
TEXTS = ["&e1;", "&e9;", "&#0;", "&#x110000;", "&lt;", "<hi>", "</hi>", "<bpt>x</bpt>", "]]>", "a"]
TEXTS += ["<tu>", "</tu>", "<tuv lang='de'>", "</tuv>", "<seg>", "</seg>", "<![CDATA[", "<!--"]
ENCODINGS = ["utf-8", "utf-16", "utf-32", "latin-1", "utf-7", "cp500", "rot13", "none such"]


@st.composite
def memories(draw):
    text = tmx(PAIRS, draw(st.sampled_from(["", *HEADERS])))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(text)))
        text = text[:place] + draw(st.sampled_from(TEXTS)) + text[place:]
    name, written = (draw(st.sampled_from(["utf-8", *ENCODINGS])) for _ in range(2))
    text = text.replace('version="1.0"', f'version="1.0" encoding="{name}"', 1)
    content = text.encode(written if written in ENCODINGS[:6] else "utf-8", "replace")
    return draw(damaged(content)) if draw(st.booleans()) else content


def deep(tag, levels):
    inner = f"<{tag}>" * levels + "x" + f"</{tag}>" * levels
    return tmx([("@", "b")]).replace("@", inner).encode()


@fuzz(150)
@given(memories())
@example(tmx([("&e9;", "b")], HEADERS[0]).replace("&amp;", "&").encode())
@example(tmx([("&e1;", "b")], HEADERS[1]).replace("&amp;", "&").encode())
@example(deep("hi", 200_000))
@example(deep("bpt", 200_000))
@example(b"<tmx " + b"a='1' " * 100_000 + b"/>")
def test_memories(room, content):
    (room / "secret.txt").write_text(SECRET)
    (path := room / "memory.tmx").write_bytes(content)
    pairs = outcome("TMX", read_pairs, path)
    assert SECRET not in str(pairs)
    assert sum(map(len, pairs[0] if pairs else ())) < 10_000
