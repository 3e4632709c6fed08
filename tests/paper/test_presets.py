"""The presets hold the numbers of the paper's appendix, which are repeated here."""

import pytest

from drift.errors import ConfigError
from drift.paper.presets import PROFILES, preset, preset_names

# Maximum length, batch size, initialisation steps, T, α, τ: the columns of the table for weak supervision.
WEAK = {
    "agnews": (128, 32, 160, 3000, 0.95, 0.5),
    "imdb": (256, 16, 160, 2500, 0.9, 0.5),
    "yelp": (512, 16, 200, 2500, 0.95, 0.5),
    "mitr": (64, 64, 150, 1000, 0.9, 0.5),
    "conll03": (128, 32, 900, 1800, 0.9, 0.5),
    "webpage": (128, 32, 300, 200, 0.95, 0.5),
    "wikigold": (128, 32, 3500, 700, 0.9, 0.5),
    "bc5cdr": (128, 32, 1500, 1000, 0.9, 0.5),
}
SEMI = {
    "agnews": (128, 32, 1200, 4000, 0.95, 0.6),
    "imdb": (256, 16, 1000, 3000, 0.99, 0.5),
    "amazon": (256, 16, 800, 4000, 0.9, 0.5),
}
ONE_OVER_TAU = {  # GCN, GRAND
    "cora": (4.0, 3.0),
    "citeseer": (3.5, 3.0),
    "pubmed": (4.0, 3.0),
}


@pytest.mark.parametrize(
    ("name", "setting", "column"),
    [(name, "weak", column) for name, column in WEAK.items()]
    + [(name, "semi", column) for name, column in SEMI.items()],
)
def test_the_tables_of_hyper_parameters(name: str, setting: str, column: tuple[float, ...]) -> None:
    max_length, batch_size, initial_steps, steps, alpha, tau = column
    assert preset(name, setting, "paper") == {
        "model": {"name": "roberta-base", "max_length": max_length, "dropout": 0.1},
        "method": {"alpha": alpha, "tau": tau},
        "training": {
            "batch_size": batch_size,
            "learning_rate": 1e-5,
            "weight_decay": 1e-4,
            "initial_steps": initial_steps,
            "steps": steps,
        },
    }


@pytest.mark.parametrize("name", ["agnews", "imdb"])
def test_the_paragraph_on_textcnn(name: str) -> None:
    max_length, batch_size, _, _, alpha, tau = SEMI[name]
    assert preset(name, "textcnn", "paper") == {
        "model": {
            "name": "textcnn",
            "max_length": max_length,
            "windows": [2, 3, 4, 5],
            "maps": 500,
            "dropout": 0.5,
        },
        "method": {"alpha": alpha, "tau": tau},
        "training": {
            "optimizer": "sgd",
            "momentum": 0.9,
            "batch_size": batch_size,
            "learning_rate": 5e-4,
            "weight_decay": 1e-4,
            "initial_steps": 100,
            "steps": 1000,
        },
    }


@pytest.mark.parametrize("name", ONE_OVER_TAU)
def test_the_paragraph_on_graphs(name: str) -> None:
    for setting, model, one_over_tau in zip(("semi", "grand"), ("gcn", "grand"), ONE_OVER_TAU[name], strict=True):
        settings = preset(name, setting, "paper")
        assert settings["model"]["name"] == model
        assert settings["method"]["alpha"] == 0.99
        assert 1 / settings["method"]["tau"] == pytest.approx(one_over_tau, rel=1e-15)


def test_every_dataset_of_the_paper_has_a_preset() -> None:
    assert preset_names() == sorted({*WEAK, *SEMI, *ONE_OVER_TAU})


@pytest.mark.parametrize("profile", PROFILES)
def test_every_setting_has_every_profile(profile: str) -> None:
    settings = {name: ["weak"] for name in WEAK}
    for name in SEMI:
        settings.setdefault(name, []).append("semi")
    settings["agnews"].append("textcnn")
    settings["imdb"].append("textcnn")
    settings.update({name: ["semi", "grand"] for name in ONE_OVER_TAU})
    for name, of_dataset in settings.items():
        for setting in of_dataset:
            assert set(preset(name, setting, profile)) <= {"model", "method", "training"}
        with pytest.raises(ConfigError) as caught:
            preset(name, "none", profile)
        assert str(caught.value) == f"'none' is not a setting of {name} (there are: {', '.join(of_dataset)})"


def test_a_changed_preset_does_not_change_later_reads() -> None:
    preset("agnews", "weak")["method"]["tau"] = 9
    assert preset("agnews", "weak")["method"]["tau"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("agnew", "weak"), "'agnew' is not a preset; did you mean 'agnews'?"),
        (("../presets/agnews", "weak"), "is not a preset"),
        (("yelp", "semi"), "'semi' is not a setting of yelp (there are: weak)"),
        (("agnews", "task"), "'task' is not a setting of agnews (there are: weak, semi, textcnn)"),
        (("agnews", "weak", "lap-top"), "not a profile; did you mean 'laptop'"),
    ],
)
def test_a_wrong_name_is_an_error_that_lists_the_known_ones(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        preset(*arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_preset_of_another_task_is_refused_and_those_of_this_task_are_listed() -> None:
    assert preset_names("text") == ["agnews", "amazon", "imdb", "yelp"]
    assert sorted(name for task in ("text", "tokens", "nodes") for name in preset_names(task)) == preset_names()
    assert preset("agnews", "weak", task="text") == preset("agnews", "weak")
    with pytest.raises(ConfigError) as caught:
        preset("cora", "semi", task="text")
    assert str(caught.value) == "'cora' is not a preset for text (there are: agnews, amazon, imdb, yelp)"
