"""Foreign office files: damaged zip archives and XML, bombs, entities, odd and doubled names."""

import io
import warnings
import zipfile

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keras_transformer.serving.readers import office
from tests.fuzz.mutations import damaged
from tests.fuzz.outcome import fuzz, outcome

pytestmark = pytest.mark.once("reads XML; no tensors")

WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
TEXT = f"<w:document {WORD}><w:p><w:r><w:t>A dog</w:t></w:r><w:t> runs.</w:t></w:p></w:document>"
SECRET = "a line of a file that only the reader may see"
HEADERS = [
    '<!DOCTYPE x [<!ENTITY e0 "a"><!ENTITY e1 "&e0;&e0;">]>',
    '<!DOCTYPE x [<!ENTITY e1 SYSTEM "secret.txt">]>',
    '<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">',
    '<?xml version="1.0" encoding="utf-7"?>',
    '<?xml version="1.0" encoding="utf-16"?>',
    '<?xml version="1.1" encoding="latin-1"?>',
]
_TYPE = '<Override PartName="/{}" ContentType="application/{}+xml"/>'
TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
TYPES += _TYPE.format("word/document.xml", "x.wordprocessingml.document.main")
TYPES += _TYPE.format("word/header1.xml", "x.wordprocessingml.header")
TYPES += _TYPE.format("ppt/slides/slide1.xml", "x.presentationml.slide") + "</Types>"
PARTS = ["&e1;", "&#0;", "&#xd800;", "<w:t>", "</w:t>", "<w:p>", "</w:p>", "<![CDATA[", "<?x?>"]
NAMES = ["word/document.xml", "content.xml", "ppt/slides/slide1.xml", "../word/document.xml"]
NAMES += ["word/header1.xml", "a" * 300, "word\\document.xml", "word/document.xml/", "\u202e.xml"]


def archive(*members, how=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", how) as made:
        warnings.simplefilter("ignore")  # of names that come twice
        for name, content in (*members, (office.TYPES, TYPES)):
            if name != office.TYPES or not any(x == "content.xml" for x, _ in members):
                made.writestr(name, content)
    return out.getvalue()


@st.composite
def parts(draw):
    text = TEXT
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(text)))
        text = text[:place] + draw(st.sampled_from(PARTS)) + text[place:]
    content = draw(st.sampled_from(["", *HEADERS])) + text
    return content.encode(draw(st.sampled_from(["utf-8", "utf-8", "utf-16", "latin-1"])), "replace")


hows = st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
members = st.lists(st.tuples(st.sampled_from(NAMES), parts()), min_size=1, max_size=3)
archives = st.builds(lambda found, how: archive(*found, how=how), members, hows)
BOMB = archive(("word/document.xml", TEXT), ("media/x", bytes(250_000_000)))
DEEP = f"<w:document {WORD}>" + "<w:p>" * 5000 + "<w:t>a</w:t>" + "</w:p>" * 5000 + "</w:document>"


@fuzz(120)
@given(st.one_of(archives, archives.flatmap(damaged), damaged(archive((NAMES[0], TEXT)))))
@example(BOMB)
@example(archive((NAMES[0], DEEP)))
def test_office_files(room, content):
    (room / "secret.txt").write_text(SECRET)

    def read():
        texts, _ = office.read(content)
        return texts, office.filled(content, texts)

    found = outcome("office files", read)
    assert SECRET not in str(found and found[0])
