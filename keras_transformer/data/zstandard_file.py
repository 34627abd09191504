"""`ZstandardFile`: a `.zst` file, decompressed while it is read."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from keras_transformer.system.extras import missing

_BLOCK = 1 << 17


class ZstandardFile(io.RawIOBase):
    """A stream of the decompressed bytes of all frames of a file.

    A truncated file raises an error; the reader of the package `zstandard` (0.25) does not.

    Args:
        path: The file.

    Raises:
        ImportError: If the package `zstandard` is not installed.
    """

    def __init__(self, path: str | Path):
        try:
            import zstandard
        except ImportError as error:
            raise missing("reading .zst files", "corpora") from error
        self._start = zstandard.ZstdDecompressor().decompressobj
        self._error = zstandard.ZstdError
        self._file = open(path, "rb")  # noqa: SIM115 - closed with this file
        self._frame: Any = None
        self._rest = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with decompressed bytes; return their number, 0 at the end.

        Raises:
            EOFError: If the file ends inside a frame or is corrupt.
        """
        while not self._rest:
            packed = self._frame.unused_data if self._frame and self._frame.eof else b""
            packed = packed or self._file.read(_BLOCK)
            if self._frame is None or self._frame.eof:
                if not packed:
                    return 0
                self._frame = self._start()
            elif not packed:
                raise EOFError("it ends inside a frame")
            try:
                self._rest = self._frame.decompress(packed)
            except self._error as error:
                raise EOFError(str(error)) from error
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._file.close()
        super().close()
