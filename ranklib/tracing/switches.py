"""Sub-layers of a running transformer switched off, without a table of model families.

A skip connection is an addition inside a block, one of whose operands is the stream itself: first what the
block was called with, then what the first such addition gave (in post-norm blocks: that after its
normalisation). While the model runs every addition is seen, and one operand is returned in its place: the
branch, if the skip is off, or the stream, if the branch is off. Nothing is subtracted again and no class is
replaced. A block that does not show exactly two skip connections, one after the other, is refused.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ranklib.tracing.blocks import blocks, stream_in, stream_out, with_stream

SWITCHES = ("attention_skip", "mlp_skip", "skip", "mlp", "norm", "positions")
RELEASED = ("skip", "attention_skip", "mlp")
REMEDY = "measure without switches, or pass a model whose blocks are attention and MLP, each with its skip"

_TENSOR = torch.Tensor
_IN_PLACE = {_TENSOR.add_, _TENSOR.__iadd__}
_ADDITIONS = {torch.add, _TENSOR.add, _TENSOR.__add__, _TENSOR.__radd__} | _IN_PLACE
_PRODUCTS = {torch.mul, _TENSOR.mul, _TENSOR.__mul__, _TENSOR.__rmul__}
_NORMALISATIONS = {F.layer_norm, getattr(F, "rms_norm", F.layer_norm)}
_OF_QUERIES_OR_KEYS = re.compile(r"(^|_)(q|k|qk|query|key)(_|$)")


def _refusal(expected: str, got: str, remedy: str = REMEDY) -> ValueError:
    return ValueError(f"model: expected {expected}, got {got}; {remedy}")


def switches(without: str | Iterable[str]) -> tuple[str, ...]:
    """The names in ``without``, or between the commas of a string, checked, each once, "skip" as given.

    >>> switches(["skip", "mlp"]) == switches("skip, mlp")
    True
    """
    parts = map(str.strip, without.split(",")) if isinstance(without, str) else without
    names = tuple(dict.fromkeys(parts))
    for name in names:
        if name not in SWITCHES:
            raise ValueError(f"without: expected names among {SWITCHES}, got {name!r}; choose from them")
    return names


class _Additions(TorchFunctionMode):
    """Sees every operation of a run; inside a block, replaces the additions that are skip connections."""

    def __init__(self, off: frozenset[str]) -> None:
        super().__init__()
        self.off = off
        self.skips = bool(off & {"attention_skip", "mlp_skip", "mlp"})  # whether they have to be found
        self.dropped = {1 * ("attention_skip" in off), 2 * ("mlp_skip" in off)} - {0}
        self.norms = self.positions = self.blocks = self.inside_norm = 0
        self.stream: list[Tensor] = []

    def enter(self, stream: Tensor) -> None:
        """A block begins: this tensor is the stream."""
        self.stream, self.shape = [stream], stream.shape
        self.seen, self.read, self.norms, self.inside_norm, self.older = 0, False, 0, 0, None

    def leave(self, output: Tensor) -> None:
        """A block ends; raises ``ValueError`` if it did not have the parts that are to be switched off."""
        self.stream, self.blocks = [], self.blocks + 1
        if self.skips and self.seen != 2:
            raise _refusal("two skip connections in every block", f"{self.seen} in block {self.blocks}")
        if output.shape != self.shape:
            raise _refusal(f"blocks that keep the shape {tuple(self.shape)}", f"{tuple(output.shape)}")
        if "norm" in self.off and not self.norms:
            got = f"none in block {self.blocks}"
            raise _refusal("a normalisation in every block to switch off", got, 'leave "norm" out')
        if "positions" in self.off and not self.positions:
            got = "none that could be found"
            raise _refusal("position terms in the scores to switch off", got, 'leave "positions" out')

    def is_stream(self, value: object) -> bool:
        """Whether this very tensor is the stream."""
        return any(value is known for known in self.stream)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self.stream:
            return function(*args, **kwargs)
        values = (*args, *kwargs.values())
        if self.skips and function in _ADDITIONS and any(self.is_stream(value) for value in values):
            if [value.shape for value in values if isinstance(value, Tensor)] == [self.shape] * 2:
                return self.addition(function, args, kwargs)
        if function in _NORMALISATIONS and "norm" in self.off and args[0].shape == self.shape:
            if not self.inside_norm:
                got = "one that a block computes by itself"
                remedy = 'make it an nn.LayerNorm, or leave "norm" out'
                raise _refusal("normalisations that are modules", got, remedy)
        result = function(*args, **kwargs)
        if any(self.is_stream(value) for value in values):
            self.read = self.read or getattr(function, "__name__", "") != "__get__"
            if function in _PRODUCTS and any(isinstance(v, int | float) and v == 1 for v in values):
                self.stream.append(result)
        return result

    def addition(self, function: Callable, args: tuple, kwargs: dict) -> Tensor:
        """The sum, or the operand that is to stand for it."""
        self.seen += 1
        if kwargs:
            raise _refusal("skip connections stream + branch", f"an addition with {sorted(kwargs)}")
        if self.is_stream(args[0]) == self.is_stream(args[1]):
            raise _refusal("skip connections stream + branch", "the stream added to itself")
        if not self.read:
            got = "a branch that does not read the stream before it"
            raise _refusal("sub-layers one after the other", got)
        older, younger = args if self.is_stream(args[0]) else args[::-1]
        if self.seen == 2 and "mlp" in self.off:
            result = self.older = older
        elif self.seen in self.dropped:
            result = younger
        else:
            result = function(*args)
        if function in _IN_PLACE and result is not args[0]:
            result = args[0].copy_(result)
        self.stream, self.read = [result], False
        return result

    def before_norm(self, module: nn.Module, args: tuple) -> None:
        """Hook: what is added from here on is inside a normalisation."""
        self.inside_norm += 1

    def after_norm(self, of_stream: bool) -> Callable:
        """A hook: where norms are off, the input; else it notes what in a post-norm block is the stream."""

        def hook(module: nn.Module, args: tuple, output: Tensor) -> Tensor | None:
            self.inside_norm -= 1
            if not self.stream or not args or not isinstance(args[0], Tensor) or args[0].shape != self.shape:
                return None
            if "norm" in self.off and of_stream:
                self.norms += 1
                return args[0]
            if self.seen == 1 and self.is_stream(args[0]):
                self.stream.append(output)
            return None

        return hook


def _is_norm(module: nn.Module) -> bool:
    return not list(module.children()) and type(module).__name__.lower().endswith("norm")


def _zero(value: Tensor) -> Tensor:
    return torch.zeros_like(value)


def _unrotate(value: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Cosine and sine of angle zero, at the scale of those given: 1, unless stretched for long contexts."""
    cosine, sine = value
    scale = torch.hypot(cosine, sine).mean().item()
    return torch.full_like(cosine, 1.0 if abs(scale - 1) < 1e-2 else scale), torch.zeros_like(sine)


# Arguments of blocks that bring positions into the scores: ALiBi; rotations of queries and keys; the
# sinusoids that XLNet projects to keys, named r beside its segments.
_POSITION_ARGUMENTS = {"alibi": _zero, "position_embeddings": _unrotate, "r": _zero}
# Modules whose output is added to the scores.
_POSITION_MODULES = ("relative_attention_bias", "relative_position_bias")


def _without_positions(mode: _Additions, block: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    names = list(inspect.signature(block.forward).parameters)

    def changed(name: str, value):
        neutral = _POSITION_ARGUMENTS.get(name)
        rotations = name != "position_embeddings" or isinstance(value, tuple)
        if not neutral or value is None or not rotations or (name == "r" and "seg_mat" not in names):
            return value
        mode.positions += 1
        return neutral(value)

    positional = names[: len(args)]
    return (
        tuple(changed(name, value) for name, value in zip(positional, args, strict=True)),
        {name: changed(name, value) for name, value in kwargs.items()},
    )


def _released(model: nn.Module, names: tuple[str, ...], found: list[nn.Module]) -> tuple[frozenset, list]:
    """What the released experiments switch off under these names, and the modules that become identities."""
    kind = getattr(getattr(model, "config", None), "model_type", None)
    if kind not in ("bert", "albert", "xlnet"):
        raise ValueError(
            f"as_released: expected a BERT, ALBERT or XLNet, got {kind or type(model).__name__}; "
            "the released code has no other; leave as_released out"
        )
    for name in names:
        if name not in RELEASED:
            raise ValueError(
                f"without: expected names among {RELEASED} with as_released, got {name!r}; "
                "the released code has no such switch; leave as_released out"
            )
    off = {"attention_skip"} if {"skip", "attention_skip"} & set(names) else set()
    if "mlp" not in names:
        return frozenset(off), []
    if kind == "albert":  # the two linear maps become identities; GELU, skip and LayerNorm stay
        return frozenset(off), [module for block in found for module in (block.ffn, block.ffn_output)]
    return frozenset(off | {"mlp"}), []


def _identity(value: Tensor) -> Tensor:
    return value


@contextmanager
def switched_off(
    model: nn.Module, without: str | Iterable[str] = (), *, as_released: bool = False
) -> Iterator[None]:
    """Inside the ``with``, ``model`` runs without these parts of its blocks; afterwards it is as before.

    * "attention_skip", "mlp_skip", or "skip" for both: the sub-layer's branch stands for stream + branch.
    * "mlp": the MLP is bypassed with its skip and, in post-norm blocks, its normalisation: the block returns
      what stands after the attention sub-layer. (The MLP is still computed, and its result not used.)
    * "norm": every LayerNorm or RMSNorm on the stream's shape inside blocks is the identity; those of queries
      and keys, and those outside the blocks, stay.
    * "positions": position terms inside the scores (relative biases, rotations, ALiBi, XLNet's) are neutral;
      position embeddings added to the input stay.

    ``as_released``: the switches of the paper's released experiments, which are others. There "skip" is the
    skip of attention alone, the MLP keeping its own; "mlp" is as above in BERT and XLNet, while in ALBERT the
    two linear maps become identities and the activation, the skip and LayerNorm stay.

    Works under autograd, in any dtype and on any device, and leaves training or evaluation mode alone. Raises
    ``ValueError`` for an unknown name and for a model other than those three with ``as_released``; as the
    model runs, also where a switch finds nothing to switch off and, if a skip or the MLP is off, for a block
    that does not show exactly two skip connections one after the other (parallel sub-layers, cross-attention,
    scaled streams, an MLP computed in chunks).

    >>> layer = nn.TransformerEncoderLayer(6, 2, 11, dropout=0, batch_first=True, norm_first=True).double()
    >>> encoder, x = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.ones(1, 5, 6).double()
    >>> with switched_off(encoder, ["mlp", "norm"]):
    ...     y = encoder(x)
    >>> by_hand = x
    >>> for block in encoder.layers:
    ...     by_hand = by_hand + block.self_attn(by_hand, by_hand, by_hand)[0]
    >>> torch.allclose(y, by_hand)
    True

    Source: chapter `real-transformers`; ``as_released`` is the paper's code.
    """
    names, found = switches(without), blocks(model)
    off = frozenset(names) | (frozenset({"attention_skip", "mlp_skip"}) if "skip" in names else frozenset())
    identities: list[nn.Module] = []
    if as_released:
        off, identities = _released(model, names, found)
    if not off and not identities:
        yield
        return
    mode = _Additions(off)

    def before(block, args, kwargs):
        if "positions" in off:
            args, kwargs = _without_positions(mode, block, args, kwargs)
        mode.enter(stream_in(args, kwargs))
        return args, kwargs

    def after(block, args, output):
        mode.leave(stream_out(output))
        return with_stream(output, mode.older) if "mlp" in off else output

    def no_bias(module, args, output):
        mode.positions += 1
        return torch.zeros_like(output)

    with ExitStack() as stack:

        def hook(handle) -> None:
            stack.callback(handle.remove)

        for block in found:
            hook(block.register_forward_pre_hook(before, with_kwargs=True))
            hook(block.register_forward_hook(after))
            for name, module in block.named_modules():
                if _is_norm(module):
                    leaf = name.rpartition(".")[2]
                    hook(module.register_forward_pre_hook(mode.before_norm))
                    hook(module.register_forward_hook(mode.after_norm(not _OF_QUERIES_OR_KEYS.search(leaf))))
        for name, module in model.named_modules():
            if "positions" in off and name.rpartition(".")[2] in _POSITION_MODULES:
                hook(module.register_forward_hook(no_bias))
        for module in identities:
            stack.callback(_restore_forward, module, module.__dict__.get("forward"))
            module.forward = _identity
        stack.enter_context(mode)
        yield


def _restore_forward(module: nn.Module, own: Callable | None) -> None:
    del module.forward
    if own is not None:
        module.forward = own
