"""Foreign sounds: damaged WAV files, alone and in a tar file."""

import io
import struct
import tarfile
import wave

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keras_transformer.data.audio import read_wav, sound_chunks
from keras_transformer.data.recordings import read_spoken_digits
from tests.fuzz.mutations import damaged
from tests.fuzz.outcome import fuzz, outcome

pytestmark = pytest.mark.once("NumPy alone")


def wav(samples=40, channels=1, width=2, rate=8000):
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((channels, width, rate, samples, "NONE", ""))
        sound.writeframes(bytes(range(256)) * (samples * channels * width // 256 + 1))
    return file.getvalue()


def with_header(kind=1, channels=1, rate=8000, bits=16, size=80):
    header = struct.pack("<HHIIHH", kind, channels, rate, 0, 0, bits)
    parts = (
        b"fmt " + struct.pack("<I", 16) + header + b"data" + struct.pack("<I", size) + b"\1" * 80
    )
    return b"RIFF" + struct.pack("<I", 4 + len(parts)) + b"WAVE" + parts


def archive(content, name="recordings/7_theo_12.wav"):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as made:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        made.addfile(info, io.BytesIO(content))
    return file.getvalue()


numbers = st.sampled_from([0, 1, 2, 3, 8, 16, 24, 255, 8000, 44100, 65535])
sizes = st.sampled_from([0, 1, 79, 80, 2**31, 2**32 - 1])
headers = st.builds(with_header, numbers, numbers, st.sampled_from([0, 1, 7, 8000, 2**32 - 1]),
                    numbers, sizes)  # fmt: skip
sounds = st.one_of(damaged(wav()), damaged(wav(channels=2)), headers, st.binary(max_size=60))


@fuzz(150, share=3)
@given(sounds, st.sampled_from([None, 8000, 16000]))
@example(with_header(channels=0), None)
@example(with_header(rate=0), 8000)
@example(with_header(rate=2**32 - 1), 8000)
@example(with_header(rate=2**32 - 5), 16000)
def test_files(room, content, rate):
    (path := room / "sound.wav").write_bytes(content)
    outcome("WAV", read_wav, path, rate)


@fuzz(80, share=3)
@given(sounds, st.sampled_from([None, 8000]))
@example(with_header(rate=2**32 - 1, size=2**32 - 1), None)
def test_streams(content, rate):
    outcome("WAV", lambda: list(sound_chunks(io.BytesIO(content), rate)[1]))


@fuzz(80, share=3)
@given(st.one_of(sounds.map(archive), damaged(archive(wav()))))
@example(archive(wav(), "7_theo_" + "9" * 5000 + ".wav"))
@example(archive(wav(), "²_theo_1.wav"))
def test_archives(room, content):
    (path := room / "digits.tar").write_bytes(content)
    outcome("WAV", read_spoken_digits, path)
