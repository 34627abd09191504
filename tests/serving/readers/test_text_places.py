"""Translations that are put into the slots of a text."""

import pytest
from lxml import etree

from keras_transformer.serving.readers.paragraphs import Paragraphs
from keras_transformer.serving.readers.text_places import fill, marked

pytestmark = pytest.mark.once("files: no tensor is read")
TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def filled(inner, translation):
    """The marked text of an OpenDocument paragraph, and the paragraph with its translation."""
    tree = etree.fromstring(f"<t:p xmlns:t='{TEXT}'>{inner}</t:p>")
    (slots,) = Paragraphs(tree).texts
    text = marked(slots)
    fill(slots, translation)
    return text, etree.tostring(tree, encoding="unicode").partition(">")[2].removesuffix("</t:p>")


SPAN = '<span id="{}">{}</span>'
ONE, TWO = SPAN.format(0, "one"), SPAN.format(1, "two")


@pytest.mark.parametrize(
    "inner,translation,expected",
    [
        ("a<t:s/>b", f"{ONE} {TWO}", "one<t:s/>two"),
        ("a <t:s/>b", f"{ONE} {TWO}", "one <t:s/>two"),
        ("a<t:bookmark/> b", f"{ONE} {TWO}", "one<t:bookmark/> two"),
        ("a <t:bookmark/>b", f"{ONE} {TWO}", "one <t:bookmark/>two"),
        ("a<t:bookmark/>b", f"{ONE}{TWO}", "one<t:bookmark/>two"),
        ("aa <t:span>b</t:span>", f"x {TWO} {ONE} &amp; y", "x two one &amp; y<t:span></t:span>"),
        ("a <t:span>b</t:span>", f"x {TWO}{SPAN.format(0, '')}", "<t:span>x two</t:span>"),
    ],
)
def test_white_space_and_order(inner, translation, expected):
    text, found = filled(inner, translation)
    assert found.replace("<t:span/>", "<t:span></t:span>") == expected
    assert ("</span> <span" in text) == inner.startswith("a<t:s/>")


def test_edges_of_words_texts_are_kept():
    xml = f"<w:p xmlns:w='{WORD}'><w:r><w:t>a</w:t><w:noBreakHyphen/><w:t>b &lt;</w:t></w:r></w:p>"
    tree = etree.fromstring(xml)
    (slots,) = Paragraphs(tree).texts
    assert marked(slots) == '<span id="0">a-b &lt;</span>'
    fill(slots, '<span id="0"> x &lt; </span>')
    first, *others = tree.iter(f"{{{WORD}}}t")
    assert first.text == " x < " and not any(x.text for x in others)
    assert first.get("{http://www.w3.org/XML/1998/namespace}space") == "preserve"
