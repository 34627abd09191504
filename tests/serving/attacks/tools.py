"""Files and requests that several attacks send."""

import io
import zipfile

import httpx

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.wordprocessingml.document.main+xml"/></Types>'
)
MOST_KEPT = 60_000_000  # bytes of files that the attacked server keeps


def archive(xml):
    """Returns a Word document with only this text."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as one:
        one.writestr("word/document.xml", xml)
        one.writestr("[Content_Types].xml", TYPES)
    return out.getvalue()


def send_file(url, name, content, target="de", timeout=90):
    form = {"source": "en", "target": target}
    return httpx.post(
        f"{url}/translate_file", data=form, files={"file": (name, content)}, timeout=timeout
    )
