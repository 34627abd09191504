"""The command that starts processes."""

from typer.testing import CliRunner

from keras_transformer.cli import app


def test_a_command_of_ours_in_two_processes(capfd):
    done = CliRunner().invoke(app, ["launch", "--processes", "2", "--", "--version"])
    assert done.exit_code == 0
    assert capfd.readouterr().out.count("keras-transformer 0.") == 2


def test_a_script(tmp_path, capfd):
    script = tmp_path / "script.py"
    script.write_text("import os, sys; print(sys.argv[1:]); sys.exit(4)")
    done = CliRunner().invoke(app, ["launch", "--processes", "1", "--", "python", str(script), "x"])
    assert done.exit_code == 4
    assert "['x']" in capfd.readouterr().out
