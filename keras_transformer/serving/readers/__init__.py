"""Readers of file formats; each file is read in its own process with limited resources.

A reader is a module with two functions: `read` returns the texts of a file, and names of parts
whose words are left out; `filled` returns the file with other texts. Readers use only the standard
library, lxml and markdown-it-py.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
from pathlib import Path

from keras_transformer.serving.turns import Turns
from keras_transformer.serving.waiting import TooLargeError
from keras_transformer.system.extras import missing

MOST_BYTES = 1_000_000_000  # memory of a reader's process
MOST_SECONDS = 20  # processor time of a reader's process
LETTERS = 50  # maximum characters of all texts, tags included, over the maximum number of texts
FORBIDDEN = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0
COMMAND = (sys.executable, "-I", str(Path(__file__).parent))


class Readers:
    """Readers of files: extract the texts of a file, and write the file with other texts.

    A reader's process may take `MOST_BYTES` of memory and `MOST_SECONDS` of processor time (without
    limit on Windows), and ends with its request. So a file that was made to exhaust the server
    exhausts only that process.

    Args:
        most_texts: Maximum number of texts in a file. Together they may have `LETTERS` times as
            many characters.
        processes: Maximum number of processes at the same time. If more are needed, clients take
            turns.
    """

    def __init__(self, most_texts: int, processes: int = 2):
        self._most_texts, self._most_letters = most_texts, LETTERS * most_texts
        self._turns = Turns(processes)

    async def texts(self, reader: str, content: bytes) -> tuple[list[str], list[str]]:
        """Return the texts of a file, and names of parts that are left out, such as "ruby".

        Args:
            reader: Name of a module of this folder, such as "office".
            content: The file.

        Raises:
            ValueError: If the file is not of this type, or its archive is too large unpacked.
            TooLargeError: If it has too many texts or characters, or takes too much time or memory.
            ImportError: If a library is missing.
        """
        answer, _ = await self._run(reader, content, None)
        return answer["texts"], answer["left"]

    async def filled(self, reader: str, content: bytes, texts: list[str]) -> bytes:
        """Return a copy of a file with other texts.

        Args:
            reader, content: As in `texts`.
            texts: The new texts, as many as the method `texts` returned; characters that XML
                forbids are left out.

        Raises:
            ValueError, TooLargeError, ImportError: As in `texts`.
        """
        _, file = await self._run(reader, content, [FORBIDDEN.sub("", text) for text in texts])
        return file

    async def _run(self, reader, content, texts):
        """Run a reader on a file in a process of its own; return its answer and the new file."""
        asked = {"reader": reader, "texts": texts, "most_texts": self._most_texts}
        asked["most_letters"] = self._most_letters
        asked |= {"seconds": MOST_SECONDS, "most_bytes": MOST_BYTES}
        async with self._turns:
            pipe = asyncio.subprocess.PIPE
            process = await asyncio.create_subprocess_exec(*COMMAND, stdin=pipe, stdout=pipe)
            try:
                message = json.dumps(asked).encode() + b"\n" + content
                output, _ = await process.communicate(message)
            finally:  # the request may have been cancelled
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        line, _, file = output.partition(b"\n")
        answer = json.loads(line) if line else {"large": "one that took more"}
        if "large" in answer:
            raise TooLargeError(
                f"a file must have at most {self._most_texts} paragraphs and {self._most_letters} "
                "characters, and take at most "
                f"{MOST_SECONDS} seconds and {MOST_BYTES} bytes to read, got {answer['large']}"
            )
        if "missing" in answer:
            raise missing("translating such a file", "serve")
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer, file
