"""Archives: their files, damage, and files that are large unpacked."""

import tarfile
import zipfile

import pytest

from keras_transformer.data import archives
from keras_transformer.data.archives import extracted, is_zip, read_tar, read_zip
from keras_transformer.data.images import read_idx


@pytest.fixture
def files(tmp_path):
    """A folder with the same two files in `x.tar.gz` and `x.zip`, one of eleven bytes."""
    for name, text in {"b": "longer text", "a": "text"}.items():
        (tmp_path / name).write_text(text)
    with (
        tarfile.open(tmp_path / "x.tar.gz", "w:gz") as tar,
        zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as zipped,
    ):
        for name in ("b", "a"):
            tar.add(tmp_path / name, f"in/{name}")
            zipped.write(tmp_path / name, f"in/{name}")
    return tmp_path


def test_their_files(files):
    expected = {"in/a": b"text", "in/b": b"longer text"}
    assert dict(read_tar(files / "x.tar.gz")) == expected
    found = [(match[0], content) for match, content in read_zip(files / "x.zip", "^in/.$")]
    assert found == [*expected.items()]
    assert [match[1] for match, _ in read_zip(files / "x.zip", r"/(a)$")] == ["a"]


@pytest.mark.parametrize("read,name", [(read_tar, "x.tar.gz"), (read_zip, "x.zip")])
def test_damage(files, read, name):
    more = () if read is read_tar else ("",)
    (files / name).write_bytes((files / name).read_bytes()[:60])
    with pytest.raises(ValueError, match=rf"{name} must be a complete \w+ file"):
        list(read(files / name, *more))
    with pytest.raises(FileNotFoundError):
        list(read(files / "none", *more))


@pytest.mark.parametrize("kind", ["xz", "bz2", "gz"])
def test_damage_inside_a_tar_file(files, rng, kind):
    path = files / f"y.tar.{kind}"
    (files / "c").write_bytes(rng.bytes(100_000))
    with tarfile.open(path, f"w:{kind}") as tar:
        tar.add(files / "c")
    _damage(path)
    with pytest.raises(ValueError, match=f"y.tar.{kind} must be a complete tar file"):
        list(read_tar(path))


@pytest.mark.parametrize(
    "kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_damage_inside_a_zip_file(files, rng, kind):
    with zipfile.ZipFile(files / "y.zip", "w", kind) as archive:
        archive.writestr("c", rng.bytes(100_000))
    _damage(files / "y.zip")
    with pytest.raises(ValueError, match=r"y.zip must be a complete zip file"):
        list(read_zip(files / "y.zip", ""))


def _damage(path):
    content = bytearray(path.read_bytes())
    content[50_000:50_100] = bytes(100)
    path.write_bytes(content)


def test_folders_are_no_archives(files):
    for read in (read_tar, lambda path: read_zip(path, "")):
        with pytest.raises(IsADirectoryError):
            list(read(files))


def test_large_files(files, monkeypatch):
    monkeypatch.setattr(archives, "MOST_BYTES", 10)
    message = r"x\.(tar\.gz|zip): the size of in/b must be at most 10 bytes, got 11"
    with pytest.raises(ValueError, match=message):
        list(read_tar(files / "x.tar.gz"))
    with pytest.raises(ValueError, match=message):
        list(read_zip(files / "x.zip", "b"))
    assert len(list(read_zip(files / "x.zip", "a"))) == 1


def test_large_idx_files(files, monkeypatch):
    monkeypatch.setattr("keras_transformer.data.images.MOST_BYTES", 10)
    with pytest.raises(ValueError, match="b must have at most 10 bytes, got more"):
        read_idx(files / "b")


def zipped(path, *entries):
    """Write a zip file of pairs of a name, or a ZipInfo, and a content."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize("top", ["", "model/"])
def test_a_folder_in_a_zip_file(top, tmp_path):
    mac = [("__MACOSX/._config.json", b"x")]
    path = zipped(tmp_path / "m.ZIP", (f"{top}config.json", "{}"), (f"{top}a/b", b"b"), *mac)
    assert is_zip(path) and not is_zip(tmp_path)
    with extracted(path) as folder:
        names = {x.relative_to(folder).as_posix() for x in folder.rglob("*")}
        assert names == {"config.json", "a", "a/b"}
        assert (folder / "a/b").read_bytes() == b"b"
    assert not folder.exists()
    for error in (ValueError, FileNotFoundError):
        with pytest.raises(error, match=rf"^{path}.*config.json is bad"), extracted(path) as folder:
            raise error(f"{folder / 'config.json'} is bad")
    with pytest.raises(ValueError, match="invalid start byte"), extracted(path):
        b"\xff".decode()


def entry(name, mode=0, flags=0):
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    info.flag_bits |= flags
    return info


INSIDE, PLAIN = "must be a path inside the folder", "must be a plain file"


@pytest.mark.parametrize(
    "entries, problem",
    [
        ([("/etc/x", "a")], INSIDE),
        ([("a/../../x", "a")], INSIDE),
        ([("..", "a")], INSIDE),
        ([(r"..\x", "a")], INSIDE),
        ([("C:x", "a")], INSIDE),
        ([("a", "a"), ("a/b", "a")], INSIDE),
        ([(entry("link", 0o120777), "/etc/passwd")], PLAIN),
        ([(entry("device", 0o020666), "a")], PLAIN),
        ([], r"files in .*m.zip must be from 1 to 1,000, got 0"),
        ([("folder/", "")], "must be from 1 to 1,000, got 0"),
        ([(str(i), "a") for i in range(1001)], "must be from 1 to 1,000, got 1001"),
        ([("zeros", bytes((1 << 26) + 10_000_000))], "unpacked bytes of .*m.zip must be at most"),
    ],
)
def test_zip_files_that_are_not_extracted(entries, problem, tmp_path):
    path = zipped(tmp_path / "m.zip", *entries)
    with pytest.raises(ValueError, match=problem), extracted(path):
        raise AssertionError
    assert [x.name for x in tmp_path.iterdir()] == ["m.zip"]


def test_damaged_zip_files_of_folders(tmp_path, rng, recwarn):
    path = zipped(tmp_path / "m.zip", ("config.json", rng.bytes(100_000)))
    whole = path.read_bytes()
    zipped(path, ("a", "a"), ("a", "b"))
    with pytest.raises(ValueError, match="must be files with different names"), extracted(path):
        pass
    encrypted = bytearray(whole)
    for start in (whole.index(b"PK\3\4") + 6, whole.index(b"PK\1\2") + 8):
        encrypted[start] |= 1
    for content in (whole[:50_000], b"", b"text", whole.replace(b"PK\3\4", b"PK\3\5")):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="m.zip must be a complete zip file"), extracted(path):
            pass
    path.write_bytes(encrypted)
    with pytest.raises(ValueError, match="no link and not encrypted"), extracted(path):
        pass
    path.write_bytes(whole)
    _damage(path)
    with pytest.raises(ValueError, match="m.zip must be a complete zip file"), extracted(path):
        pass
