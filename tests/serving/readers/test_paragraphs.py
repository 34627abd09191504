"""Texts in the XML of office documents: what is one text, what parts words, what is no text."""

import pytest
from lxml import etree

from keras_transformer.serving.readers.paragraphs import Paragraphs

pytestmark = pytest.mark.once("files: no tensor is read")
NAMES = {
    "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "s": "http://purl.oclc.org/ooxml/wordprocessingml/main",  # of Strict Open XML
    "wp": "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
    "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
    "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
    "c": "http://schemas.openxmlformats.org/drawingml/2006/chart",
    "p": "http://schemas.openxmlformats.org/presentationml/2006/main",
    "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "t": "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
    "d": "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0",
    "o": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
    "v": "urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0",
    "pr": "urn:oasis:names:tc:opendocument:xmlns:presentation:1.0",
}


def read(xml, **options):
    """Each text, with "|" between its slots, and what is left out."""
    names = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in NAMES.items())
    found = Paragraphs(etree.fromstring(f"<x {names}>{xml}</x>"), **options)
    return ["|".join(slot.text for slot in slots) for slots in found.texts], sorted(found.left)


def run(inner, form=""):
    return f"<w:r>{form}{inner}</w:r>"


BOLD = "<w:rPr><w:b/><w:lang w:val='en'/></w:rPr>"
BOLD_TOO = "<w:rPr><w:b/><w:lang w:val='de'/></w:rPr>"


@pytest.mark.parametrize(
    "xml,expected",
    [
        (run("<w:t>man</w:t><w:br/><w:t>loves</w:t>"), ["man", "loves"]),
        (run("<w:t>man</w:t><w:tab/><w:t>loves</w:t>"), ["man", "loves"]),
        (run("<w:t>man</w:t><w:cr/>") + run("<w:t>loves</w:t>"), ["man", "loves"]),
        (run("<w:t>man</w:t><w:noBreakHyphen/><w:t>made</w:t>"), ["man-made"]),
        (run("<w:t>ma</w:t><w:softHyphen/><w:t>de\u00ad</w:t>"), ["made"]),
        (run("<w:t>a</w:t>") + "<w:proofErr/>" + run("<w:t>b</w:t>"), ["ab"]),
        (run("<w:t>a</w:t>", BOLD) + run("<w:t>b</w:t>", BOLD_TOO), ["ab"]),
        (run("<w:t>a</w:t>") + run("<w:t>b</w:t>", BOLD), ["a|b"]),
        (run("<w:t>a</w:t>") + run("<w:footnoteReference/>") + run("<w:t>b</w:t>"), ["a|b"]),
        (run("<w:t>1,000</w:t>"), []),
        (run("<w:instrText>PAGE</w:instrText>"), []),
    ],
)
def test_texts_of_word(xml, expected):
    assert read(f"<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr>{xml}</w:p>") == (expected, [])
    strict = xml.replace("w:", "s:")
    assert read(f"<s:p>{strict}</s:p>") == (expected, [])


def test_what_is_left_out():
    gone = run("<w:delText>no</w:delText>")
    xml = f"<w:p>{run('<w:t>yes</w:t>')}<w:del>{gone}</w:del>"
    xml += f"<w:moveFrom>{run('<w:t>there</w:t>')}</w:moveFrom></w:p>"
    assert read(xml) == (["yes"], ["deleted text"])
    ruby = "<w:ruby><w:rt>{}</w:rt><w:rubyBase>{}</w:rubyBase></w:ruby>"
    ruby = ruby.format(run("<w:t>とう</w:t>"), run("<w:t>東</w:t>"))
    assert read(f"<w:p>{run(ruby)}{run('<w:t>に</w:t>')}</w:p>") == (["東|に"], ["ruby"])
    xml = "<t:tracked-changes><t:p>no</t:p></t:tracked-changes><t:p>a<t:ruby><t:ruby-base>b"
    xml += "</t:ruby-base><t:ruby-text>c</t:ruby-text></t:ruby>d</t:p>"
    assert read(xml) == (["a|b|d"], ["deleted text", "ruby"])


def test_text_boxes_and_alternative_texts():
    """A text box is there twice, for programs of two ages; both are translated."""
    inner = f"<w:p>{run('<w:t>box</w:t>')}</w:p>"
    both = f"<mc:AlternateContent><mc:Choice>{inner}</mc:Choice><mc:Fallback>{inner}</mc:Fallback>"
    both += '</mc:AlternateContent><wp:docPr name="no" descr="a dog" title=""/>'
    xml = f"<w:p>{run('<w:t>one</w:t>')}{run(both)}{run('<w:t>two</w:t>')}</w:p>"
    assert read(xml)[0] == ["one|two", "box", "box", "a dog"]
    table = '<w:tblPr><w:tblCaption w:val="a table"/></w:tblPr>'
    assert read(table) == (["a table"], [])


def test_texts_of_slides_and_charts():
    part = "<a:r><a:rPr lang='{}'/><a:t>{}</a:t></a:r>"
    xml = part.format("en", "old ") + part.format("de", "man") + "<a:br/>" + part.format("", "a\tb")
    assert read(f"<a:p>{xml}<a:fld><a:t>c</a:t></a:fld></a:p>")[0] == ["old man", "a", "b|c"]
    shape = "<p:sp><p:nvSpPr><p:nvPr>{}</p:nvPr></p:nvSpPr><a:p>{}</a:p></p:sp>"
    both = shape.format("<p:ph/>", part.format("", "Click")) + shape.format(
        "", part.format("", "x")
    )
    assert read(both)[0] == ["Click", "x"] and read(both, is_master=True)[0] == ["x"]
    assert read("<p:cm><p:text>remark</p:text></p:cm>")[0] == ["remark"]
    points = "<c:{0}><c:pt><c:v>spring</c:v></c:pt></c:{0}>"
    assert read(points.format("strCache"))[0] == ["spring"]
    assert read(points.format("numCache"))[0] == []
    assert read("<c:tx><c:v>name</c:v></c:tx>")[0] == ["name"]


@pytest.mark.parametrize(
    "xml,expected",
    [
        ("a<t:line-break/>b<t:tab/>c", ["a", "b", "c"]),
        ("a<t:s/>b", ["a|b"]),
        ("a<t:s t:c='3'/>b", ["a", "b"]),
        ("a<t:soft-page-break/>b<!-- c -->c", ["abc"]),
        ("a<t:bookmark/>b", ["a|b"]),
        ("a<t:note><t:note-citation>i</t:note-citation><t:p>n</t:p></t:note>b", ["a|b", "n"]),
        ("a<d:frame>\n<t:p>box</t:p>\n</d:frame>b", ["a|b", "box"]),
        ("a<o:annotation><t:p>remark</t:p></o:annotation>b", ["a|b", "remark"]),
        ("a<d:frame><v:desc>a dog</v:desc></d:frame>", ["a", "a dog"]),
        ("a<t:script>code</t:script>b", ["a|b"]),
    ],
)
def test_texts_of_open_documents(xml, expected):
    assert read(f"<t:p>{xml}</t:p>") == (expected, [])


def test_masters_and_footers_of_open_documents():
    xml = "<d:frame pr:placeholder='true'><t:p>Click</t:p></d:frame><t:p>x</t:p>"
    xml += "<pr:footer-decl>foot</pr:footer-decl>"
    assert read(xml, is_master=True)[0] == ["x", "foot"]
