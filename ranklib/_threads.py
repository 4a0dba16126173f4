"""One thread where work is small: with a busy core beside it, a second one waits instead of helping."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from threadpoolctl import ThreadpoolController


@cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries that this process has loaded; finding them takes 20 ms, so it is done once."""
    return ThreadpoolController().select(user_api="blas")


def one_blas_thread():
    """A context in which numpy and scipy call BLAS with one thread; torch keeps its own.

    Call it where scipy has been imported: what is loaded later is not limited.
    """
    return _blas().limit(limits=1)


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """For decompositions: LAPACK meets its other threads hundreds of times in one of them.

    Singular values of 128 x 768 take 6 ms on one thread, 10 on two, and seconds on two beside a busy core.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def singular_values(x: torch.Tensor) -> torch.Tensor:
    """``torch.linalg.svdvals`` on one thread."""
    with one_torch_thread():
        return torch.linalg.svdvals(x)


def eigenvalues(x: torch.Tensor) -> torch.Tensor:
    """``torch.linalg.eigvals`` on one thread."""
    with one_torch_thread():
        return torch.linalg.eigvals(x)
