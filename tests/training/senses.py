"""Data sets of noise: images of digits, and clips of spoken ones."""

import gzip
import io
import tarfile
import wave

import numpy as np


def write_digits(folder, rng):
    folder.mkdir()
    for part, count in (("train", 40), ("t10k", 12)):
        labels = rng.integers(0, 10, count).astype("uint8")
        images = rng.integers(0, 256, (count, 28, 28)).astype("uint8")
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            data = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
            path = folder / f"{part}-{kind}-ubyte.gz"
            path.write_bytes(gzip.compress(data + array.tobytes()))


def write_clips(folder, rng):
    folder.mkdir()
    with tarfile.open(folder / "recordings.tar.gz", "w:gz") as archive:
        for name in ("0_ann_0", "7_ann_5", "0_bob_4", "7_bob_9", "9_bob_10"):
            file = io.BytesIO()
            with wave.open(file, "wb") as sound:
                sound.setparams((1, 2, 8000, 0, "NONE", ""))
                sound.writeframes(rng.integers(-9999, 9999, 2000).astype("<i2").tobytes())
            member = tarfile.TarInfo(f"recordings/{name}.wav")
            member.size = len(file.getvalue())
            archive.addfile(member, io.BytesIO(file.getvalue()))
