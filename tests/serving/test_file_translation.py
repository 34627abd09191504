"""Files in, files of the same kind out."""

import asyncio
import io
import re
import zipfile

import docx
import pytest

from keras_transformer.serving.file_translation import translate_file
from keras_transformer.serving.readers import Readers
from keras_transformer.serving.turns import Workers


async def shout(texts, kind):
    """Translates by capitals, tags left alone."""
    if kind == "text":
        return [text.upper() for text in texts]
    return [re.sub(r"(<[^>]*>)|([^<]+)", lambda x: x[1] or x[2].upper(), text) for text in texts]


async def turn(texts, kind):
    """Puts the last element first."""
    assert kind == "html"
    return ["".join(reversed(re.findall(r"<span.*?</span>", text))) for text in texts]


def translated(name, content, translate=shout):
    return translated_and_left(name, content, translate)[0]


def translated_and_left(name, content, translate=shout):
    async def run():
        return await translate_file(name, content, translate, Readers(1000), Workers("files", 1))

    return asyncio.run(run())


def word(*paragraphs):
    """A Word document; a paragraph is a list of (text, whether it is bold)."""
    document = docx.Document()
    for runs in paragraphs:
        paragraph = document.add_paragraph()
        for text, bold in runs:
            paragraph.add_run(text).bold = bold
    document.sections[0].header.paragraphs[0].text = "head"
    document.add_table(1, 1).cell(0, 0).text = "cell"
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def runs_of(content):
    document = docx.Document(io.BytesIO(content))
    paragraphs = [
        [(run.text, run.bold) for run in paragraph.runs] for paragraph in document.paragraphs
    ]
    cell = document.tables[0].cell(0, 0).text
    return paragraphs, document.sections[0].header.paragraphs[0].text, cell


def test_plain_text_and_html():
    assert translated("a.TXT", "\ufeffäb\r\n".encode()) == "ÄB\r\n".encode()
    assert translated("a.html", b"<p id='x'>a</p>") == b"<p id='x'>A</p>"


def test_what_in_html_is_left():
    source = b"<p title='one'>a <code>b</code></p><img alt=2>"
    assert translated_and_left("a.html", source)[1] == ["attributes", "code"]
    assert translated_and_left("a.html", b"<p title=''>a</p>")[1] == []


def test_markdown_and_xliff():
    assert translated("a.md", b"a `b` *c*\n===\n") == b"A `b` *C*\n===\n"
    source = b"<xliff version='2.0'><segment><source>a<ph id='1'/></source></segment></xliff>"
    target = source.replace(b"</segment>", b"<target>A<ph id='1'/></target></segment>")
    expected = target.replace(b"<segment", b'<segment state="translated"')
    assert translated("a.xlf", source) == expected


def test_subtitles_keep_times_and_lines():
    source = b"7\n00:00:01,000 --> 00:00:02,500\none two three\nfour five <i>six</i>\n\n"
    source += b"8\n00:00:03,000 --> 00:00:04,000\nend\n\n"
    assert translated("a.srt", source).decode() == source.decode().upper().replace("I>", "i>")


def test_word_documents_keep_formats():
    content = word([("a ", None), ("big", True), (" dog & <cat>", None)], [], [("two", None)])
    paragraphs, head, cell = runs_of(translated("a.docx", content))
    assert paragraphs == [
        [("A ", None), ("BIG", True), (" DOG & <CAT>", None)],
        [],
        [("TWO", None)],
    ]
    assert (head, cell) == ("HEAD", "CELL")


def test_words_in_another_order_keep_all_text():
    content = word([("one", True), ("three", None)])
    (first, *_), *_ = runs_of(translated("a.docx", content, turn))
    assert first == [("", True), ("threeone", None)]


def test_opendocument():
    text = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
    body = f'<o xmlns:t="{text}"><t:h>a</t:h><t:p>b <t:span>c</t:span> d<t:s/></t:p>x</o>'
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        archive.writestr("content.xml", body)
        archive.writestr("styles.xml", "<x>kept</x>")
    with zipfile.ZipFile(io.BytesIO(translated("a.odt", out.getvalue()))) as archive:
        found = archive.read("content.xml").decode()
        assert "<t:h>A</t:h><t:p>B <t:span>C</t:span> D<t:s/></t:p>x</o>" in found
        assert archive.read("styles.xml") == b"<x>kept</x>"
        assert archive.infolist()[0].compress_type == zipfile.ZIP_STORED


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.pdf", b"", "file must be one of .txt, .html"),
        ("a.txt", b"\xff", "must be UTF-8"),
        ("a.srt", b"one\ntwo", "must hold SubRip or WebVTT subtitles"),
        ("a.docx", b"x", "must be a document of its type"),
        ("a.odt", b"PK\x05\x06" + 18 * b"\0", "must be a document of its type"),
    ],
    ids=lambda x: x if isinstance(x, str) and x.startswith("a.") else "",
)
def test_bad_files(name, content, message):
    with pytest.raises(ValueError, match=message):
        translated(name, content)
