"""Office documents: damaged ones, and ones that were made to exhaust."""

import contextlib
import io
import random
import zipfile

import pytest

from keras_transformer.serving.readers import office
from tests.serving.test_file_translation import word

MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    f'<Override PartName="/{{}}" ContentType="{MAIN}"/></Types>'
)
pytestmark = pytest.mark.once("files: no tensor is read")


def _texts(content):
    return office.read(content)[0]


def archive(xml, name="word/document.xml"):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as one:
        one.writestr(name, xml)
        if name != "content.xml":
            one.writestr(office.TYPES, TYPES.format(name))
    return out.getvalue()


def test_parts_are_numbered():
    content = word([("a ", None), ("b & c", True)])
    (paragraph,) = [text for text in _texts(content) if "b &" in text]
    assert paragraph == '<span id="0">a </span><span id="1">b &amp; c</span>'
    others = [text for text in _texts(content) if text != paragraph]
    moved = ['<span id="1">x</span><span id="0">y</span>' if "b &" in x else x for x in [paragraph]]
    found = _texts(office.filled(content, [*moved, *others]))
    assert any("xy" in text for text in found)  # all in one slot


def test_parts_are_found_by_their_types():
    """Word Online writes its body into `word/document2.xml`."""
    content = io.BytesIO(word([("the body", None)]))
    moved = io.BytesIO()
    with zipfile.ZipFile(content) as one, zipfile.ZipFile(moved, "w") as other:
        for name in one.namelist():
            data = one.read(name).replace(b"word/document.xml", b"word/document2.xml")
            other.writestr(name.replace("word/document.xml", "word/document2.xml"), data)
    assert '<span id="0">the body</span>' in _texts(moved.getvalue())
    assert office.read(moved.getvalue()) == office.read(content.getvalue())


def test_what_is_not_read_is_named():
    out = io.BytesIO()
    types = TYPES.format("word/document.xml")
    with zipfile.ZipFile(out, "w") as one:
        one.writestr(office.TYPES, types)
        one.writestr("word/document.xml", "<x/>")
        kinds = "".join(f'<y Type="http://a/{x}"/>' for x in ("oleObject", "aFChunk", "image"))
        one.writestr("word/_rels/document.xml.rels", f"<x>{kinds}</x>")
        one.writestr("docProps/core.xml", "<x><title>my title</title></x>")
    assert office.read(out.getvalue())[1] == ["embedded files", "imported files", "properties"]


def test_damaged_archives_are_refused():
    content, generator, refused = word([("one", None)]), random.Random(0), 0
    for _ in range(100):
        damaged = bytearray(content)
        for _ in range(4):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        with contextlib.suppress(ValueError):
            refused += 1
            _texts(bytes(damaged))
            refused -= 1
    assert refused > 50


def test_what_unpacks_to_too_much_is_refused(monkeypatch):
    many = archive("<x>" + "<a/>" * (office.MOST_TAGS + 1) + "</x>")
    assert len(many) < 100_000
    with pytest.raises(ValueError, match="at most 2000000 tags, got 2000003"):
        _texts(many)
    monkeypatch.setattr(office, "MOST_UNPACKED", 100)
    with pytest.raises(ValueError, match="bytes unpacked"):
        _texts(word([("one", None)]))


def test_nothing_is_fetched(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    xml = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{secret}">]>'
    xml += '<x xmlns:t="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><t:p>a &e; b</t:p></x>'
    assert "hidden" not in "".join(_texts(archive(xml, "content.xml")))
