"""A small Word document of 400,000 paragraphs."""

from tests.serving.attacks.tools import WORD, archive, send_file

SECONDS, MEGABYTES = 30, 300


def attack(url):
    paragraph = "<w:p><w:r><w:t>a</w:t></w:r></w:p>"
    content = archive(f'<w:d xmlns:w="{WORD}">{paragraph * 400_000}</w:d>')
    response = send_file(url, "a.docx", content)
    assert response.status_code in (400, 413), response.text
