"""Sound: files, rates, and the features that `transformers` makes."""

import io
import re
import struct
import wave

import numpy as np
import pytest
from keras import ops
from transformers import WhisperFeatureExtractor

from keras_transformer.data.audio import log_mel, read_wav, resample, sound_chunks, write_wav


def tone(hertz, rate, seconds=0.5):
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)


def wav(samples, rate=8000, width=2, channels=1):
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((channels, width, rate, 0, "NONE", ""))
        sound.writeframes(samples.tobytes())
    return file.getvalue()


def test_wav_is_read(tmp_path):
    values = np.array([0, 1, -32768, 32767], "<i2")
    path = tmp_path / "a.wav"
    path.write_bytes(wav(values))
    samples, rate = read_wav(path)
    assert rate == 8000 and samples.dtype == np.float32
    np.testing.assert_array_equal(samples, values / 32768)
    stereo, _ = read_wav(io.BytesIO(wav(values, channels=2)))
    np.testing.assert_allclose(stereo, [0.5 / 32768, -0.5 / 32768])


@pytest.mark.parametrize(
    "data,message",
    [
        (b"RIFF1234", "must be a WAV file of 16-bit PCM"),
        (b"ID3" + 50 * b"\0", "must be a WAV file of 16-bit PCM"),
        (wav(np.zeros(9, "uint8"), width=1), "must be a WAV .*: its samples have 8 bits; convert"),
        (wav(np.zeros(50, "<i2"))[:-20], "is truncated: its header announces 50 samples"),
    ],
)
def test_other_files_are_refused(data, message, tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"a.wav {message}"):
        read_wav(path)


@pytest.mark.parametrize("begin", [b"ID3", b"\xff\xfb", b"OggS", b"fLaC", b"\0\0\0 ftypM4A "])
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("my talk.mp3", "ffmpeg -i 'my talk.mp3' -c:a pcm_s16le 'my talk.16-bit.wav'"),
        ("talk.wav", "ffmpeg -i talk.wav -c:a pcm_s16le talk.16-bit.wav"),
        (None, "ffmpeg -i INPUT -c:a pcm_s16le OUTPUT.wav"),
    ],
)
def test_the_command_that_converts_is_named(begin, name, command, tmp_path):
    file = io.BytesIO(begin + 50 * b"\0")
    if name:
        (tmp_path / name).write_bytes(file.getvalue())
        file = tmp_path / name
    with pytest.raises(ValueError, match=f"convert it with `{re.escape(command)}`$"):
        read_wav(file)


def test_wav_is_written(tmp_path):
    path = tmp_path / "a.wav"
    write_wav(path, np.array([0, 0.25, -1, 1.5]), 8000)
    samples, rate = read_wav(path)
    assert rate == 8000
    np.testing.assert_array_equal(samples, np.array([0, 0.25, -1, 32767 / 32768], "float32"))
    for wrong in (np.zeros((2, 3)), np.array([0, np.nan])):
        with pytest.raises(ValueError, match=r"samples must be finite numbers \(N,\), got"):
            write_wav(path, wrong, 8000)
    assert len(read_wav(path)[0]) == 4  # not touched


class Pipe:
    """A file that cannot seek, and counts what was read of it."""

    def __init__(self, data):
        self.file, self.count = io.BytesIO(data), 0

    def read(self, size):
        data = self.file.read(size)
        self.count += len(data)
        return data


UNKNOWN = 2**32 - 1


@pytest.mark.parametrize(
    "whole,size",
    [(UNKNOWN, UNKNOWN), (0, 0), (UNKNOWN, 0), (0x7FFFF024, 0x7FFFF000), (50, UNKNOWN)],
    ids=["ffmpeg", "GStreamer", "no data size", "SoX", "data only"],
)
@pytest.mark.parametrize("extra", [b"", b"LIST\x03\0\0\0abc\0"], ids=["plain", "list"])
def test_wav_of_a_pipe_is_read_to_its_end(whole, size, extra):
    """Programs that write to a pipe do not know how much they will write."""
    values = np.arange(500, dtype="<i2")
    content = bytearray(wav(values, channels=2))
    content[4:8], content[40:44] = whole.to_bytes(4, "little"), size.to_bytes(4, "little")
    content[36:36] = extra
    samples, rate = read_wav(io.BytesIO(content + b"\1"))  # cut inside a frame
    assert rate == 8000
    np.testing.assert_allclose(samples, values.reshape(-1, 2).mean(axis=1) / 32768)
    chunks = sound_chunks(Pipe(bytes(content)), seconds=0.01)[1]
    np.testing.assert_allclose(np.concatenate(list(chunks)), samples)


def test_the_other_headers_of_16_bit_pcm():
    """WAVE_FORMAT_EXTENSIBLE, which many recorders write, and RF64 of more than 4 GiB."""
    values = np.arange(500, dtype="<i2")
    plain = wav(values)
    guid = b"\1\0\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71"
    extended = struct.pack("<HHIHI", 22, 16, 0, 0, 0)[:8] + guid
    form = struct.pack("<I", 40) + b"\xfe\xff" + plain[22:36] + extended
    found, _ = read_wav(io.BytesIO(plain[:16] + form + plain[36:]))
    np.testing.assert_array_equal(found, values / np.float32(32768))
    sizes = b"ds64" + struct.pack("<IQQQI", 28, 1064, 1000, 500, 0)
    large = b"RF64" + b"\xff" * 4 + b"WAVE" + sizes + plain[12:40] + b"\xff" * 4 + plain[44:]
    found, _ = read_wav(io.BytesIO(large + b"LIST\4\0\0\0abcd"))
    np.testing.assert_array_equal(found, values / np.float32(32768))


@pytest.mark.parametrize("channels", [1, 2])
def test_a_sound_that_arrives(channels):
    values = np.arange(2000, dtype="<i2")
    header = wav(values, channels=channels)
    # As programs write it that do not know the length yet.
    endless = header.replace((4000).to_bytes(4, "little"), b"\xff" * 4)
    expected = values.reshape(-1, channels).mean(axis=1) / 32768
    for data, rate in ((endless, None), (header, None), (header[44:], 8000)):
        if rate and channels == 2:
            continue
        pipe = Pipe(data)
        found, chunks = sound_chunks(pipe, rate, seconds=0.05)
        assert found == 8000 and pipe.count < 2000  # not the whole sound
        chunks = list(chunks)
        assert {len(x) for x in chunks[:-1]} == {400} and chunks[0].dtype == np.float32
        np.testing.assert_allclose(np.concatenate(chunks), expected)


def test_what_arrives_and_is_no_sound():
    for data, rate, message in (
        (b"ID3" + 50 * b"\0", None, "the sound must be a WAV file of 16-bit PCM: "),
        (wav(np.zeros(9, "uint8"), width=1), None, "its samples have 8 bits; convert it with"),
        (wav(np.zeros(0, "<i2")), None, "the sound must be one or more samples of 16-bit PCM"),
        (b"1", 8000, "the sound must be one or more samples of 16-bit PCM, got 'no samples'"),
        (b"12", 0, "sample_rate must be a whole number"),
    ):
        with pytest.raises(ValueError, match=message):
            sound_chunks(io.BytesIO(data), rate)


@pytest.mark.parametrize("before,after", [(8000, 16000), (16000, 8000), (44100, 16000)])
def test_a_tone_stays_a_tone(before, after):
    found = resample(tone(440, before), before, after)
    expected = tone(440, after)
    assert len(found) == len(expected)
    inside = slice(after // 20, -after // 20)
    np.testing.assert_allclose(found[inside], expected[inside], atol=2e-3)


def test_what_a_lower_rate_cannot_hold_is_gone():
    assert np.abs(resample(tone(6000, 16000), 16000, 8000))[200:-200].max() < 2e-3


def test_read_at_another_rate():
    samples, rate = read_wav(io.BytesIO(wav((2**15 * tone(300, 8000)).astype("<i2"))), 16000)
    assert rate == 16000
    np.testing.assert_allclose(samples[800:-800], tone(300, 16000)[800:-800], atol=2e-3)


@pytest.mark.parametrize("seconds,num_mels", [(1, 80), (2, 128)])
def test_features_are_those_of_transformers(rng, seconds, num_mels):
    samples = 0.1 * rng.standard_normal(16000 * seconds) * np.linspace(0, 1, 16000 * seconds) ** 3
    samples = (samples + tone(700, 16000, seconds)).astype("float32")
    theirs = WhisperFeatureExtractor(feature_size=num_mels, chunk_length=seconds + 1)
    expected = theirs(samples, sampling_rate=16000, return_tensors="np").input_features[0].T
    ours = ops.convert_to_numpy(log_mel(np.pad(samples, (0, 16000)), num_mels=num_mels))
    # Their FFT is in float64; the quietest of 38,400 cells was 1.2e-4 away on one machine.
    np.testing.assert_allclose(ours, expected, atol=3e-4)


def test_features_at_another_rate(rng):
    """Rates of 8 kHz and less: `transformers` has bands up to 8 kHz, so its settings differ."""
    from transformers.audio_utils import mel_filter_bank, spectrogram, window_function

    samples = rng.standard_normal((2, 4000)).astype("float32") * [[1], [0.01]]
    ours = ops.convert_to_numpy(log_mel(samples, 8000, 20))
    filters = mel_filter_bank(101, 20, 0.0, 4000.0, 8000, norm="slaney", mel_scale="slaney")
    for row, found in zip(samples, ours, strict=True):
        options = dict(power=2.0, mel_filters=filters, log_mel="log10")
        expected = spectrogram(row, window_function(200, "hann"), 200, 80, **options)[:, :-1]
        expected = (np.maximum(expected, expected.max() - 8) + 4) / 4
        np.testing.assert_allclose(found, expected.T, atol=1e-4)


def test_too_few_samples():
    with pytest.raises(ValueError, match="samples must be more than 200, .*, got 200"):
        log_mel(np.zeros(200))


def test_features_of_tensors_and_arrays(rng):
    samples = rng.standard_normal((2, 1234)).astype("float32")
    found, expected = log_mel(ops.convert_to_tensor(samples), 8000, 9), log_mel(samples, 8000, 9)
    np.testing.assert_allclose(*map(ops.convert_to_numpy, (found, expected)), atol=1e-5)
