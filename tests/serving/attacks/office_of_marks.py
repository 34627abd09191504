"""A small Word document with one paragraph of 200,000 marks."""

from tests.serving.attacks.tools import WORD, archive, send_file

SECONDS, MEGABYTES = 30, 200


def attack(url):
    text = f"<w:p><w:r><w:t>{'!(a' * 70_000}</w:t></w:r></w:p>"
    content = archive(f'<w:d xmlns:w="{WORD}">{text}</w:d>')
    assert len(content) < 3000
    response = send_file(url, "a.docx", content)
    assert response.status_code == 413, response.text
