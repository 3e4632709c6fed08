"""The model card has the metadata of the hub and what the record says; `push` uploads the model and nothing else."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import drift
from drift.cli.main import app
from drift.errors import ConfigError, FileError
from drift.runs.result import LABELED, MODEL, Run
from tests.runs.hub import hub
from tests.runs.small import metrics_of, small_encoder, small_fit, small_table, write_csv

pytest.importorskip("huggingface_hub", reason="needs huggingface_hub: pip install 'drift-ssl[text]'")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    base = tmp_path_factory.mktemp("card")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRIFT_CACHE", str(base / "cache"))
        table = small_table(24, labeled=8)
        table["topic"] = [{"sport": "sp|<b>ort"}.get(name, name) for name in table["topic"]]
        test = small_table(20, seed=1)
        test["topic"] = [{"sport": "sp|<b>ort"}.get(name, name) for name in test["topic"]]
        files = write_csv(base / "my texts.csv", table), write_csv(base / "test.csv", test)
        encoder = small_encoder(base / "encoder")
        yield small_fit(files[0], encoder, test=files[1], out=base / "run", self_contained=True)


def test_the_card_says_what_the_record_says(run: Run) -> None:
    text = (run.path / MODEL / "README.md").read_text(encoding="utf-8")  # type: ignore[operator]
    _, head, body = text.split("---\n", 2)
    about = yaml.safe_load(head)
    assert about["pipeline_tag"] == "text-classification"
    (found,) = about["model-index"][0]["results"]
    record = metrics_of(run.path)  # type: ignore[arg-type]
    accuracy = next(each["value"] for each in found["metrics"] if each["type"] == "accuracy")
    assert accuracy == round(record["test"]["model"]["accuracy"], 4)
    low, high = record["test"]["interval"]
    assert f"{100 * low:.1f} to {100 * high:.1f} %" in body
    assert "Label budget: 8 gold labels" in body
    assert "trained on my texts.csv" in body
    assert str(run.path.parent) not in head  # type: ignore[union-attr]
    assert "<b>" not in body.replace("\\<b\\>", "")
    assert "| sp\\|\\<b\\>ort |" in body
    for heading in ("How to use", "Data and labels", "Scores", "Limits", "How to reproduce"):
        assert f"## {heading}\n" in body


def test_the_card_shows_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    texts = small_table(24)["body"]
    source, names = write_csv(tmp_path / "t.csv", {"body": texts}), {"money": "bank stock", "sport": "goal team"}
    run = small_fit(source, small_encoder(tmp_path / "encoder"), classes=names, out=tmp_path / "run")
    card = (tmp_path / "run" / MODEL / "README.md").read_text(encoding="utf-8")
    assert "Sources of noisy labels" in card
    shown = [each.examples[0] for each in run.record.sources.caught if each.examples]
    assert shown
    assert not [text for text in [*texts, *shown] if text[:20] in card]


def test_push_uploads_the_folder_of_the_model_byte_for_byte(run: Run) -> None:
    with hub() as stored:
        files = drift.push(run, "anna/topics")
        assert stored.private == {"anna/topics": True}
        sent = stored.files["anna/topics"]
        assert set(sent) == {file.as_posix() for file in files}
        assert all(content == (run.path / MODEL / name).read_bytes() for name, content in sent.items())  # type: ignore[operator]
        assert drift.push(run, "anna/topics") == files  # a repository that is there
        done = CliRunner().invoke(app, ["push", str(run.path), "anna/open", "--public"])
        assert done.exit_code == 0, done.output
        assert stored.private["anna/open"] is False
        assert stored.files["anna/open"] == sent
    assert {"README.md", "use.py", "drift.json", "head.safetensors"} <= set(sent)
    assert not {LABELED, "report.html", "metrics.json"} & set(sent)


def test_a_refusal_of_the_hub_is_one_line(run: Run) -> None:
    with (
        hub("hf_of_somebody_else") as stored,
        pytest.raises(FileError, match=r"the hub refused .*401 Unauthorized.* log in with") as raised,
    ):
        drift.push(run, "anna/topics")
    assert stored.files == {}
    assert len(str(raised.value).splitlines()) == 1
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError

    for kind in (HfHubHTTPError, HFValidationError, LocalTokenNotFoundError):
        assert issubclass(kind, (OSError, ValueError, RuntimeError))


def test_a_dry_run_lists_and_wrong_names_are_refused(run: Run) -> None:
    with hub() as stored:
        done = CliRunner().invoke(app, ["push", str(run.path), "anna/topics", "--dry-run"])
    assert stored.private == {}
    assert done.exit_code == 0, done.output
    assert "README.md" in done.output
    assert "files would be uploaded to anna/topics" in done.output
    for name in ("topics", "a/b/c", "/x", "x/"):
        with pytest.raises(ConfigError, match="write user/name"):
            drift.push(run, name, dry_run=True)


def test_a_model_whose_encoder_is_only_here_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    table = write_csv(tmp_path / "t.csv", small_table(24, labeled=8))
    other = small_fit(table, small_encoder(tmp_path / "encoder"), out=tmp_path / "run")
    with pytest.raises(ConfigError, match="--self-contained"):
        drift.push(other, "anna/topics", dry_run=True)
