"""A small BERT with a tokenizer of eleven words, on disk as users have it, and the command's status."""

import pytest

from ranklib.__main__ import main

transformers = pytest.importorskip("transformers", reason="the optional package transformers is absent")
WORDS = "one two three four five six seven eight nine ten .".split()
SAMPLES = ["one two three four.", "Five six\nseven eight nine ten", "two two two one"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small BERT with a tokenizer of eleven words, as a user has it on disk."""
    place = tmp_path_factory.mktemp("models") / "small"
    place.mkdir()
    (place / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    sizes = dict(
        vocab_size=16, hidden_size=10, num_attention_heads=2, intermediate_size=7, num_hidden_layers=3
    )
    transformers.BertModel(transformers.BertConfig(**sizes)).save_pretrained(place)
    transformers.BertTokenizerFast(str(place / "vocab.txt")).save_pretrained(place)
    return place


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n\n\n".join(SAMPLES) + "\n")
    return path


def call(*arguments):
    """The status as a shell sees it."""
    try:
        return main([str(a) for a in arguments])
    except SystemExit as stop:
        return stop.code
