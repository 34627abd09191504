"""Small Word documents of one paragraph of 90,000 runs, from a client that leaves after a while."""

import httpx

from tests.serving.attacks.tools import WORD, archive, send_file

SECONDS, MEGABYTES = 40, 400


def attack(url):
    for letters in "a", " a":  # one long word, and words
        text = f'<w:t xml:space="preserve">{letters}</w:t>'
        runs = f"<w:r>{text}</w:r><w:r><w:rPr><w:b/></w:rPr>{text}</w:r>" * 45_000
        content = archive(f'<w:d xmlns:w="{WORD}"><w:p>{runs}</w:p></w:d>')
        assert len(content) < 40_000
        try:
            response = send_file(url, "a.docx", content, timeout=4)
            assert response.status_code in (200, 413), response.text
        except httpx.ReadTimeout:  # a model computes
            continue
