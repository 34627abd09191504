"""Translated documents, as other readers show them: LibreOffice, python-docx, python-pptx, odfpy.

The translation is in capitals, so the text that they show of it is the original's in capitals.
"""

import io
import re
import shutil
import subprocess
from xml.etree import ElementTree

import docx
import pytest
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import nsdecls
from odf import draw, opendocument, style, teletype, text
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from keras_transformer.serving.markup import blocks, placed
from keras_transformer.serving.readers import office
from keras_transformer.text.word_spans import words

pytestmark = pytest.mark.once("files: no tensor is read")


def shouted(content):
    texts = []
    for source in office.read(content)[0]:
        (block,) = blocks(source)
        found = block.text.upper()
        texts.append(placed(block, found, range(len(words(found))), words(found)))
    return office.filled(content, texts)


def saved(document):
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def word():
    """A document with everything that stands between two words, or inside of one."""
    document = docx.Document()
    run = document.add_paragraph("The old man").add_run()
    run.add_break()
    run.add_text("loves")
    run.add_tab()
    run.add_text("the")
    for element, after in (("noBreakHyphen", "hearted"), ("softHyphen", "ed"), ("cr", "dog")):
        run._r.append(OxmlElement(f"w:{element}"))
        run.add_text(after)
    run.add_break(docx.enum.text.WD_BREAK.PAGE)
    split = document.add_paragraph("Wo")
    split.add_run("rds that ")
    split.add_run("Wo").bold = True
    split.add_run("rd has checked")
    link = document.add_paragraph("see ")
    for kind in ("w:hyperlink", "w:fldSimple", "w:ins"):
        inner = f"<{kind} {nsdecls('w')}><w:r><w:t>the place</w:t></w:r></{kind}>"
        link._p.append(parse_xml(inner))
        link.add_run(", ")
    link.add_run("and more")
    field = document.add_paragraph("page ")
    for inner in ('<w:fldChar w:fldCharType="begin"/>', "<w:instrText>PAGE</w:instrText>",
                  '<w:fldChar w:fldCharType="separate"/>', "<w:t>one</w:t>",
                  '<w:fldChar w:fldCharType="end"/>'):  # fmt: skip
        field._p.append(parse_xml(f"<w:r {nsdecls('w')}>{inner}</w:r>"))
    document.add_table(1, 1).cell(0, 0).text = "in\na cell"
    document.sections[0].header.paragraphs[0].text = "the\thead"
    document.sections[0].footer.paragraphs[0].text = "the foot"
    document.add_comment(document.paragraphs[0].runs, "a\nremark")
    return saved(document)


def all_paragraphs(content):
    document = docx.Document(io.BytesIO(content))
    section = document.sections[0]
    holders = [document, document.tables[0].cell(0, 0), section.header, section.footer]
    holders += list(document.comments)
    found = [paragraph.text for holder in holders for paragraph in holder.paragraphs]
    return [*found, *(x.text for x in document.element.iter("{*}ins") if x.text)]


def test_word_as_python_docx_reads_it():
    content = word()
    before = all_paragraphs(content)
    assert before[0] == "The old man\nloves\tthe-hearteded\ndog"
    assert all_paragraphs(shouted(content)) == [x.upper() for x in before]
    texts, left = office.read(content)
    assert '<span id="0">The old man</span>' in texts and '<span id="0">loves</span>' in texts
    assert '<span id="0">the-hearteded</span>' in texts
    assert '<span id="0">Words that </span><span id="1">Wo</span><span id="2">rd has' in texts[4]
    assert not any("PAGE" in x for x in texts) and left == ["properties"]


def slides():
    """A presentation with breaks, tabs, notes, a chart, alternative texts, and a master's text."""
    show = Presentation()
    slide = show.slides.add_slide(show.slide_layouts[5])
    slide.shapes.title.text = "The old man\vloves\tthe dog"
    body = slide.shapes.add_textbox(0, 0, Inches(5), Inches(1)).text_frame
    run = body.paragraphs[0].add_run()
    run.text, run.font.bold = "bold ", True
    body.paragraphs[0].add_run().text = "and plain"
    slide.notes_slide.notes_text_frame.text = "remember\vthis"
    data = CategoryChartData()
    data.categories = ["spring", "2024"]
    data.add_series("rain", (1.5, 2.5))
    frame = slide.shapes.add_chart(XL_CHART_TYPE.PIE, 0, 0, Inches(3), Inches(3), data)
    frame.chart.chart_title.text_frame.text = "how much"
    frame._element.nvGraphicFramePr.cNvPr.set("descr", "a pie")
    return saved(show)


def text_of_slides(content):
    (slide,) = Presentation(io.BytesIO(content)).slides
    texts = [x.text_frame.text for x in slide.shapes if x.has_text_frame]
    (frame,) = (x for x in slide.shapes if x.has_chart)
    texts += [slide.notes_slide.notes_text_frame.text, frame.chart.chart_title.text_frame.text]
    texts += [*frame.chart.plots[0].categories, *(x.name for x in frame.chart.plots[0].series)]
    return [*texts, frame._element.nvGraphicFramePr.cNvPr.get("descr")]


def test_slides_as_python_pptx_reads_them():
    content = slides()
    before = text_of_slides(content)
    assert before[:2] == ["The old man\vloves\tthe dog", "bold and plain"]
    assert text_of_slides(shouted(content)) == [x.upper() for x in before]
    texts, left = office.read(content)
    assert {f'<span id="0">{x}</span>' for x in ("The old man", "loves", "the dog")} <= {*texts}
    assert not any("Click to edit" in x for x in texts)  # of the master
    assert left == ["embedded files", "properties"]


def open_document(kind="text"):
    """A text, or a presentation, with the white space of OpenDocument."""
    is_text = kind == "text"
    document = (
        opendocument.OpenDocumentText() if is_text else opendocument.OpenDocumentPresentation()
    )
    layout = style.PageLayout(name="layout")
    document.automaticstyles.addElement(layout)
    master = style.MasterPage(name="Standard", pagelayoutname="layout")
    document.masterstyles.addElement(master)
    paragraph = text.P()
    for part in ("The old man", text.LineBreak(), "loves", text.Tab(), "the", text.S(), "dog.", " ",
                 text.S(), "He lives", text.S(c=3), "in\n  Ber", text.SoftPageBreak(), "lin",
                 text.Span(text=" here"), " now"):  # fmt: skip
        if isinstance(part, str):
            paragraph.addText(part)
        else:
            paragraph.addElement(part)
    if is_text:
        header = style.Header()
        header.addElement(text.P(text="the head"))
        master.addElement(header)
        note = text.Note(noteclass="footnote")
        note.addElement(text.NoteCitation(text="i"))
        note.addElement(inner := text.NoteBody())
        inner.addElement(text.P(text="a note"))
        paragraph.addElement(note)
        paragraph.addText(" after it")
        document.text.addElement(paragraph)
    else:
        page = draw.Page(masterpagename="Standard")
        box = draw.TextBox()
        box.addElement(paragraph)
        frame = draw.Frame(width="10cm", height="5cm", x="1cm", y="1cm")
        frame.addElement(box)
        page.addElement(frame)
        document.presentation.addElement(page)
    return saved(document)


def odf_paragraphs(content):
    document = opendocument.load(io.BytesIO(content))
    return [teletype.extractText(x) for x in document.getElementsByType(text.P)]


@pytest.mark.parametrize("kind", ["text", "presentation"])
def test_open_documents_as_odfpy_reads_them(kind):
    content = open_document(kind)
    before, after = odf_paragraphs(content), odf_paragraphs(shouted(content))
    assert any(x.startswith("The old man\nloves\tthe dog.  He lives   in") for x in before)
    folded = [re.sub(r"\n  (?=Ber)", " ", x).upper() for x in before]  # which odfpy does not
    assert after == [x.replace("IA NOTE", "iA NOTE") for x in folded]
    texts, left = office.read(content)
    assert '<span id="0">the</span> <span id="1">dog. </span><span id="2">He lives</span>' in texts
    assert left == []


@pytest.fixture(scope="module")
def office_program():
    found = shutil.which("soffice")
    if found is None:
        pytest.skip("LibreOffice is not installed")
    return found


@pytest.fixture(scope="module")
def shown(office_program, tmp_path_factory):
    """The texts of each format that LibreOffice shows: of the original, and of the translation."""
    folder = tmp_path_factory.mktemp("office")
    files = {"docx": word(), "odt": open_document(), "pptx": slides()}
    files["odp"] = open_document("presentation")
    for kind, content in files.items():
        (folder / f"original-{kind}.{kind}").write_bytes(content)
        (folder / f"translated-{kind}.{kind}").write_bytes(shouted(content))
    settings = f"-env:UserInstallation={(folder / 'settings').as_uri()}"
    for target, kinds in (("txt:Text (encoded):UTF8", "docx odt"), ("fodp", "pptx odp")):
        names = [f"{x}-{kind}.{kind}" for x in ("original", "translated") for kind in kinds.split()]
        command = [office_program, settings, "--headless", "--convert-to", target, *names]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=200)
    found = {}
    for kind in files:
        if kind in ("docx", "odt"):
            read = [folder / f"{x}-{kind}.txt" for x in ("original", "translated")]
            texts = [x.read_text("utf-8-sig") for x in read]
            found[kind] = [x.replace("\u2011", "-").replace("\xad", "") for x in texts]
        else:
            trees = [folder / f"{x}-{kind}.fodp" for x in ("original", "translated")]
            found[kind] = [_text_of_flat(ElementTree.parse(x)) for x in trees]
    return found


def _text_of_flat(tree):
    """The text of the slides and notes of a presentation in one XML file."""
    uri = "urn:oasis:names:tc:opendocument:xmlns"
    (show,) = tree.iter(f"{{{uri}:office:1.0}}presentation")
    marks = {f"{{{uri}:text:1.0}}{x}": y for x, y in (("tab", "\t"), ("line-break", "\n"))}
    marks[f"{{{uri}:text:1.0}}s"] = " "

    def text_of(element):
        inner = "".join(text_of(x) + (x.tail or "") for x in element)
        return marks.get(element.tag, "") + (element.text or "") + inner

    return "\n".join(text_of(x) for x in show.iter(f"{{{uri}:text:1.0}}p"))


@pytest.mark.parametrize("kind", ["docx", "odt", "pptx", "odp"])
def test_as_libreoffice_shows_it(shown, kind):
    original, translated = shown[kind]
    assert "loves\tthe" in original
    assert translated == original.upper().replace("<NUMBER>", "<number>")
