"""Translation memories: encodings, languages, mark-up, entities, broken files."""

import pytest

from keras_transformer.data.text_files import read_pairs
from tests.data.files import PAIRS, tmx, write


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_tmx_encodings(tmp_path, encoding):
    text = tmx(PAIRS[:1])
    if encoding == "latin-1":
        text = text.replace("?>", ' encoding="ISO-8859-1"?>', 1)
    assert read_pairs(write(tmp_path / "a.tmx", text.encode(encoding))) == PAIRS[:1]


@pytest.mark.parametrize(
    ("in_file", "asked", "found"),
    [
        ("en-US", "en", True),
        ("EN_gb", "en", True),
        ("en", "EN", True),
        ("pt-BR", "pt-br", True),
        ("pt-BR", "pt-PT", False),
        ("en", "en-US", False),
        ("enm", "en", False),
    ],
)
def test_tmx_language_matching(tmp_path, in_file, asked, found):
    path = write(tmp_path / "a.tmx", tmx(PAIRS, languages=(in_file, "de-DE")))
    if found:
        assert read_pairs(path, source_language=asked) == PAIRS
    else:
        with pytest.raises(ValueError, match=rf"'{asked}' and 'de'.*\['de-DE', '{in_file}'\]"):
            read_pairs(path, source_language=asked)


def test_tmx_mark_up_variants_and_other_languages(tmp_path):
    body = """<tmx><body>
      <tu><prop>note</prop>
        <tuv xml:lang="fr"><seg>Le <hi>chien</hi></seg></tuv>
        <tuv xml:lang="de"><seg>Der <bpt i="1">&lt;b&gt;</bpt><hi>große <hi>Hund</hi></hi><ept
          i="1">&lt;/b&gt;</ept> &amp; <![CDATA[<ich>]]><ph>x<sub>alt</sub>y</ph>.</seg></tuv>
        <tuv lang="EN"><seg>The big dog &#38; I.</seg></tuv>
        <tuv lang="EN"><seg>A second English text.</seg></tuv>
        <tuv xml:lang="en"><seg>A third English text.</seg></tuv></tu>
      <tu><tuv xml:lang="en"><seg>No German.</seg></tuv></tu></body></tmx>"""
    path = write(tmp_path / "a.tmx", body)
    assert read_pairs(path) == [("The big dog & I.", "Der große Hund & <ich>.")]
    assert read_pairs(path, source_language="fr") == [("Le chien", "Der große Hund & <ich>.")]


def test_tmx_doctype_is_fine_but_no_entity_is_expanded(tmp_path):
    path = tmp_path / "a.tmx"
    system = '<!DOCTYPE tmx SYSTEM "tmx14.dtd">'
    assert read_pairs(write(path, tmx(PAIRS, system))) == PAIRS
    bomb = '<!DOCTYPE tmx [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
    secret = f'<!DOCTYPE tmx [<!ENTITY a SYSTEM "{(tmp_path / "a.tmx").as_uri()}">]>'
    for header in (bomb, secret, system):
        text = tmx([("A &a;", "B")], header).replace("&amp;a;", "&a;")
        with pytest.raises(ValueError, match=r"a.tmx, line 1: malformed TMX.*entity 'a'"):
            read_pairs(write(path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (tmx(PAIRS)[:-10], "a.tmx, line 1: malformed TMX"),
        ("<tmx>\n<body>\n</tmx>", "a.tmx, line 3: malformed TMX"),
        ("not xml", "a.tmx, line 1: malformed TMX"),
        ("", "a.tmx, line 1: malformed TMX"),
        ('<?xml version="1.0" encoding="klingon"?><tmx/>', "a.tmx, line 1: malformed TMX"),
        ('<?xml version="1.0" encoding="gb2312"?><tmx/>', "a.tmx, line 1: malformed TMX"),
        ("<html/>", "languages in the file: none"),
        ("<tmx><seg>a<seg>b</seg></seg><tu><tu></tu></tu></tmx>", "languages in the file: none"),
    ],
)
def test_malformed_tmx(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_pairs(write(tmp_path / "a.tmx", text))


# Bad input
