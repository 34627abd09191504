"""Office documents: damaged ones, and ones that were made to exhaust."""

import contextlib
import io
import random
import zipfile

import pytest

from keras_transformer.serving.readers import office
from tests.serving.test_documents import word

pytestmark = pytest.mark.once("files: no tensor is read")


def archive(xml, name="word/document.xml"):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as one:
        one.writestr(name, xml)
    return out.getvalue()


def test_parts_are_numbered():
    content = word([("a ", None), ("b & c", True)])
    (paragraph,) = [text for text in office.texts(content) if "b &" in text]
    assert paragraph == '<span id="0">a </span><span id="1">b &amp; c</span>'
    others = [text for text in office.texts(content) if text != paragraph]
    moved = ['<span id="1">x</span><span id="0">y</span>' if "b &" in x else x for x in [paragraph]]
    found = office.texts(office.filled(content, [*moved, *others]))
    assert any("xy" in text for text in found)  # all in one slot


def test_damaged_archives_are_refused():
    content, generator, refused = word([("one", None)]), random.Random(0), 0
    for _ in range(100):
        damaged = bytearray(content)
        for _ in range(4):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        with contextlib.suppress(ValueError):
            refused += 1
            office.texts(bytes(damaged))
            refused -= 1
    assert refused > 50


def test_what_unpacks_to_too_much_is_refused(monkeypatch):
    many = archive("<x>" + "<a/>" * (office.MOST_TAGS + 1) + "</x>")
    assert len(many) < 100_000
    with pytest.raises(ValueError, match="at most 2000000 tags, got 2000003"):
        office.texts(many)
    monkeypatch.setattr(office, "MOST_UNPACKED", 100)
    with pytest.raises(ValueError, match="bytes unpacked"):
        office.texts(word([("one", None)]))


def test_nothing_is_fetched(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    xml = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{secret}">]>'
    xml += f'<x xmlns:t="{office._ODF}"><t:p>a &e; b</t:p></x>'
    assert "hidden" not in "".join(office.texts(archive(xml, "content.xml")))
