"""A small Word document with one paragraph of 150 million letters."""

from tests.serving.attacks.tools import WORD, archive, send_file

SECONDS, MEGABYTES = 60, 1200


def attack(url):
    text = f"<w:p><w:r><w:t>{'a b ' * 37_500_000}</w:t></w:r></w:p>"
    content = archive(f'<w:d xmlns:w="{WORD}">{text}</w:d>')
    response = send_file(url, "a.docx", content)
    assert response.status_code in (400, 413), response.text
