"""XLIFF: targets are filled, and every other byte stays."""

import re
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from keras_transformer.serving.readers.xliff import filled, read

pytestmark = pytest.mark.once("text: no tensor is read")
ONE = """<?xml version='1.0' encoding="UTF-8"?>
<xliff version='1.2' xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original = "x">
<header><skl><internal-file>one</internal-file></skl></header><body>{}</body></file></xliff>
"""
TWO = """<x:xliff version="2.0" trgLang="de" xmlns:x="urn:oasis:names:tc:xliff:document:2.0">
<x:file id='f'><x:skeleton>one</x:skeleton>{}</x:file></x:xliff>"""
STATE = 'state="needs-review-translation" state-qualifier="mt-suggestion"'
PIECES = st.recursive(
    st.one_of(
        st.text("ab &<>\"'é\u00a0", min_size=1).map(escape),
        st.sampled_from(
            ["<x id='1' />", '<ph id="2">&lt;br/&gt;<sub>a</sub></ph>', "<bx  id='3'/>"]
        ),
        st.just("<mrk mtype='protected'>a <g id='5'>b</g></mrk>"),
    ),
    lambda inner: st.lists(inner, max_size=3).map(lambda x: f"<g  id='4'>{''.join(x)}</g>"),
    max_leaves=6,
)


def same(content):
    """The file, and the one whose targets are the sources."""
    return filled(content.encode(), read(content.encode())[0]).decode()


@given(st.lists(PIECES, max_size=4).map("".join))
def test_any_source_becomes_its_target(source):
    unit = f"<trans-unit id='1'>\n  <source >{source}</source>\n  <note>n</note></trans-unit>"
    before = ONE.format(unit)
    after = same(before)
    assert re.sub(r"\n  <target.*</target>", "", after, flags=re.DOTALL) == before
    if after != before:
        element = etree.fromstring(after.encode())
        texts = []
        for name in ("source", "target"):
            (part,) = element.iterfind(f".//{{*}}{name}")
            inner = [etree.tostring(x, encoding="unicode") for x in part]
            texts.append((part.text, inner))
        assert texts[0] == texts[1]


ROWS = {  # parts of a file, and what they become; "": they stay
    "empty target": (
        ONE, '<trans-unit><source>a</source><target xml:lang = "de"/></trans-unit>',
        f'<trans-unit><source>a</source><target xml:lang = "de" {STATE}>a</target></trans-unit>',
    ),
    "state": (
        ONE, "<trans-unit><source>a</source><seg-source>a</seg-source><target state='new'></target>"
        "</trans-unit>", "<trans-unit><source>a</source><seg-source>a</seg-source>"
        f"<target {STATE}>a</target></trans-unit>",
    ),
    "final target": (ONE, "<trans-unit><source>a</source><target>b</target></trans-unit>", ""),
    "approved": (ONE, "<trans-unit approved='yes'><source>a</source><target/></trans-unit>", ""),
    "not translated": (
        ONE, "<group translate='no'><trans-unit><source>a</source></trans-unit></group>", "",
    ),
    "other translations": (
        ONE, "<trans-unit><source>1</source><alt-trans><source>a</source></alt-trans></trans-unit>",
        "",
    ),
    "segment": (
        TWO, "<x:segment state = 'initial'><x:source>a <x:pc id='1'>b</x:pc></x:source>"
        "</x:segment>",
        "<x:segment state = \"translated\"><x:source>a <x:pc id='1'>b</x:pc></x:source>"
        "<x:target>a <x:pc id='1'>b</x:pc></x:target></x:segment>",
    ),
    "between segments": (TWO, "<x:ignorable><x:source>a</x:source></x:ignorable>", ""),
    "reviewed": (TWO, "<x:segment state='reviewed'><x:source>a</x:source></x:segment>", ""),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_what_is_filled(row):
    document, before, after = ROWS[row]
    assert same(document.format(before)) == document.format(after or before)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"<!DOCTYPE x [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><xliff>&b;</xliff>", "entities"),
        (b"<!DOCTYPE x SYSTEM 'file:///etc/passwd'><xliff/>", "entities are refused"),
        (b"<tmx/>", "must be XLIFF, got the element 'tmx'"),
        (b"<xliff", "must be XLIFF: "),
        ("<?xml version='1.0' encoding='utf-16'?><xliff/>".encode("utf-16"), "must be in UTF-8"),
    ],
)
def test_what_is_no_xliff(content, message):
    with pytest.raises(ValueError, match=message):
        read(content)
