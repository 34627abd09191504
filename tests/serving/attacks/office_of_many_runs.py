"""A small Word document with one paragraph of 90,000 runs, of two formats in turn."""

from tests.serving.attacks.tools import WORD, archive, send_file

SECONDS, MEGABYTES = 60, 700


def attack(url):
    for letters in "a", "a ", "1":  # one word, words, none
        runs = f"<w:r><w:t>{letters}</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>{letters}</w:t></w:r>"
        text = f"<w:p><w:r><w:t>a</w:t></w:r>{runs * 45_000}</w:p>"
        content = archive(f'<w:d xmlns:w="{WORD}">{text}</w:d>')
        assert len(content) < 40_000
        response = send_file(url, "a.docx", content)
        assert response.status_code in (200, 413), response.text
