"""Another processor, simulated: `pytest --rounding-noise=SEED` shakes the last digits of what kernels return.

Sums and products are added in another order on another processor, and exp or tanh come from another table. Their
results then differ by a few units in the last place. With the option each result of such a kernel, forward and
backward, moves by -2 to 2 units, decided by its digits and the seed alone, so that runs repeat. Results that
every processor shares stay: an addition, a division, a square root, a value with few bits (0, 1, 1/4, -3), and the
power of two that a value does not reach (no softmax passes 1).

A test that fails under some seed would fail on some processor. Either its tolerance forgot the scale of what it
compares, or the library loses digits. The kernels of chapters are shaken too: `pytest --nbval chapters` hands the
seed on.
"""

import functools
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

SEED = "RANKLIB_ROUNDING_NOISE"
ULPS = 2
# Bits of a mantissa that may be set in an exact value: 30 of 53, 12 of 24.
KEPT = {"float64": 30, "float32": 12}

# Names of torch's operators, without the underscore of those that work in place.
PRODUCTS = """mm bmm addmm baddbmm addbmm mv addmv dot vdot linear convolution _scaled_dot_product_flash_attention_for_cpu
    _scaled_dot_product_attention_math_for_mps _native_multi_head_attention _transformer_encoder_layer_fwd
    _trilinear _euclidean_dist _cdist_forward"""
SUMS = """sum mean nansum nanmean prod std var std_mean var_mean logsumexp logcumsumexp cumprod norm linalg_vector_norm
    _softmax _safe_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data native_layer_norm
    native_layer_norm_backward _fused_rms_norm native_group_norm nll_loss_forward mse_loss"""
FUNCTIONS = """exp expm1 exp2 log log1p log2 log10 logaddexp logaddexp2 tanh sigmoid sin cos tan sinh cosh asin acos
    atan atan2 erf erfc erfinv pow rsqrt hypot sinc gelu gelu_backward silu silu_backward softplus log_sigmoid_forward
    mish elu selu lgamma digamma xlogy special_xlog1py special_entr special_erfcx special_log_ndtr"""
DECOMPOSITIONS = """_linalg_svd _linalg_eigh _linalg_eigvals linalg_eig linalg_eigvals linalg_qr linalg_cholesky_ex
    linalg_lu linalg_lu_factor_ex _linalg_solve_ex linalg_inv_ex linalg_lstsq _linalg_det _linalg_slogdet
    linalg_matrix_exp linalg_solve_triangular triangular_solve"""
# Normal numbers come from log, cos and sin.
DRAWS = "randn randn_like normal exponential"
SHAKEN = frozenset(" ".join((PRODUCTS, SUMS, FUNCTIONS, DECOMPOSITIONS, DRAWS)).split())
# Powers that are products, quotients and square roots.
EXACT_POWERS = (-2, -1, -0.5, 0, 0.5, 1, 2, 3)
# What the library takes from numpy.
NUMPY = "exp log log1p log2 tanh sum mean dot matmul einsum"


def shake(array: np.ndarray, seed: int) -> None:
    """Move the floats of array, in place, by up to ULPS units in the last place."""
    kind = array.dtype.name
    if kind not in KEPT:
        return
    integer, width, fraction = (np.int64, 64, 52) if kind == "float64" else (np.int32, 32, 23)
    bits = np.atleast_1d(array).view(integer)
    size = (bits & integer((1 << (width - 1)) - 1)).astype(np.uint64)
    # The exponent does not decide: a power of two may be multiplied before or after, on every processor.
    hashed = (
        (size & np.uint64((1 << fraction) - 1)) ^ np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
    ) * np.uint64(0xBF58476D1CE4E5B9)
    hashed = (hashed ^ (hashed >> np.uint64(31))) * np.uint64(0x94D049BB133111EB)
    step = (hashed >> np.uint64(35)).astype(np.int64) % (2 * ULPS + 1) - ULPS
    # Inside its power of two, and only if it has more bits than an exact value. Infinity and NaN have few.
    size = size.astype(np.int64)
    rest = (1 << (fraction + 1 - KEPT[kind])) - 1
    moves = ((size + step) >> fraction == size >> fraction) & (size & rest != 0)
    bits += (step * moves).astype(integer)


def shake_tensor(tensor: torch.Tensor, seed: int) -> None:
    """The same for a plain tensor on the processor; other tensors stay."""
    if (
        type(tensor) not in (torch.Tensor, torch.nn.Parameter)
        or tensor.device.type != "cpu"
        or not tensor.numel()
    ):
        return
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if tensor.dtype in (torch.float64, torch.float32):
        shake(tensor.detach().numpy(), seed)


@functools.cache
def _is_shaken(operator) -> bool:
    return operator.overloadpacket.__name__.removesuffix("_") in SHAKEN


class RoundingNoise(TorchDispatchMode):
    """Shakes what torch's kernels return, below autograd, so that gradients see it too."""

    def __init__(self, seed: int):
        super().__init__()
        self.seed = seed

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here; True would import the compiler, for seconds

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if not _is_shaken(function) or ("pow" in str(function) and _is_exact_power(*args[:2])):
            return result
        with torch._C.DisableTorchFunction():
            for part in result if isinstance(result, tuple | list) else (result,):
                shake_tensor(part, self.seed)
        return result


def _is_exact_power(base, power) -> bool:
    return isinstance(power, int | float) and power in EXACT_POWERS


class ShakenFunction:
    """A function of numpy whose result is shaken; everything else about it is the function's own."""

    def __init__(self, function, seed: int):
        self._function, self._seed = function, seed
        functools.update_wrapper(self, function)

    def __call__(self, *args, **kwargs):
        result = self._function(*args, **kwargs)
        if isinstance(result, np.floating):
            result = np.array(result)
            shake(result, self._seed)
            return result[()]
        if isinstance(result, np.ndarray):
            shake(result, self._seed)
        return result

    def __getattr__(self, name):
        return getattr(self._function, name)


def start(seed: int):
    """Shake everything from here on in this thread; return the function that ends it."""
    mode, plain = RoundingNoise(seed), {name: getattr(np, name) for name in NUMPY.split()}
    mode.__enter__()
    for name, function in plain.items():
        setattr(np, name, ShakenFunction(function, seed))

    def end():
        for name, function in plain.items():
            setattr(np, name, function)
        mode.__exit__(None, None, None)

    return end


# The option of pytest, and the kernels that nbval starts.

STARTUP = """import os, sys
sys.path.insert(0, {folder!r})
import rounding_noise
sys.path.remove({folder!r})
rounding_noise.start(int(os.environ[rounding_noise.SEED]))
"""


def pytest_addoption(parser):
    help = "shake the last digits of what kernels return, as another processor would"
    parser.addoption("--rounding-noise", type=int, metavar="SEED", default=None, help=help)


def pytest_configure(config):
    seed = config.getoption("--rounding-noise")
    if seed is None:
        return
    folder = Path(tempfile.mkdtemp(prefix="rounding-noise-"))
    startup = folder / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "rounding_noise.py").write_text(STARTUP.format(folder=str(Path(__file__).parent)))
    os.environ |= {SEED: str(seed), "IPYTHONDIR": str(folder)}
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    config.add_cleanup(start(seed))


def pytest_report_header(config):
    seed = config.getoption("--rounding-noise")
    return None if seed is None else f"rounding noise: seed {seed}"
