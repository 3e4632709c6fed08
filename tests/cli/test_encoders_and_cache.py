"""`drift encoders` and `drift cache`: what they list is true, and get and clear do what they say."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from drift.cli.main import app
from drift.errors import ConfigError
from drift.models.catalogue import ENCODERS
from drift.models.locating import local_folder

SHELF = Path(os.environ.get("DRIFT_MODELS") or "nowhere")


def call(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_list_names_every_encoder_and_where_it_is() -> None:
    out = call("encoders")
    lines = {line.split()[0]: line for line in out.splitlines() if line.split() and line.split()[0] in ENCODERS}
    assert list(lines) == list(ENCODERS)
    for name, encoder in ENCODERS.items():
        assert encoder.licence in lines[name]
        assert (" from " not in lines[name]) == (local_folder(encoder) is not None)


@pytest.mark.skipif(
    not Path(os.environ.get("DRIFT_MODELS") or "nowhere", "bge-small-en-v1.5").is_dir(), reason="no bge"
)
def test_get_verifies_and_prints_the_checksum() -> None:
    first, second = call("encoders", "get", "default").splitlines()
    assert first.endswith("(from: folder)")
    assert len(second.removeprefix("checksum ")) == 64


def test_an_unknown_source_is_one_line() -> None:
    with pytest.raises(ConfigError, match="give one of folder, cache"):
        CliRunner().invoke(app, ["encoders", "get", "default", "--source", "net"], catch_exceptions=False)


def test_the_cache_is_listed_and_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path))
    (tmp_path / "tokens").mkdir()
    (tmp_path / "tokens" / "x.arrow").write_bytes(b"x" * 2_000_000)
    out = call("cache")
    assert "2.0 MB of at most 10,000.0 MB" in out
    assert ["tokens", "1", "2.0", "MB"] in [line.split() for line in out.splitlines()]
    assert "2.0 MB deleted" in call("cache", "clear")
    assert "0.0 MB of" in call("cache")
