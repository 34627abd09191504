"""Files of parallel text for tests."""

import gzip
from pathlib import Path
from xml.sax.saxutils import escape

PAIRS = [("A dog runs.", "Ein Hund läuft."), ("Two\u2028cats\u00a0sleep.", "Zwei Katzen schlafen.")]


def write(path: Path, text: str | bytes) -> Path:
    """Writes bytes, or text as UTF-8, packed if the name says so."""
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def tmx(pairs, header="", languages=("en", "de")) -> str:
    units = "".join(
        "<tu>"
        + "".join(
            f'<tuv xml:lang="{language}"><seg>{escape(text)}</seg></tuv>'
            for language, text in zip(languages, pair, strict=True)
        )
        + "</tu>"
        for pair in pairs
    )
    return f'<?xml version="1.0"?>{header}<tmx version="1.4"><header/><body>{units}</body></tmx>'
