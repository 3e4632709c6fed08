"""`drift models`: the models to train."""

import typer

MODELS = (  # what --model takes, the tasks, and a description
    (
        "default",
        "text, tokens",
        "the encoder that `drift encoders` names first; a head is trained, ten seeds at once",
    ),
    ("NAME or FOLDER", "text, tokens", "any encoder that transformers opens; --finetune trains all of it"),
    ("textcnn", "text", "a convolutional network over word vectors, from scratch; model.vectors=FILE"),
    ("vampire", "text", "a variational model of word counts, trained on unlabelled texts; --method vampire"),
    (
        "gcn",
        "nodes",
        "a graph convolutional network, ten seeds at once; model.neighbours=10 for large graphs",
    ),
    ("grand", "nodes", "GRAND, random propagation, ten seeds at once"),
    ("FILE.py:FUNCTION", "nodes", "a model of your own, such as one of torch_geometric"),
)


def models() -> None:
    """List all models. These are what `drift fit --model` takes, and the encoders in `$DRIFT_MODELS`."""
    from drift.models.encoders import shelved_encoders

    shelved = [(name, "text, tokens", "in $DRIFT_MODELS") for name in shelved_encoders()]
    rows = [("model", "tasks", "what it is"), *MODELS, *shelved]
    width = max(len(name) for name, _, _ in rows)
    for name, tasks, what in rows:
        typer.echo(f"{name:{width}}  {tasks:12}  {what}")
