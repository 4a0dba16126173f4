"""One BLAS thread where work is small: with a busy core beside it, a second one waits instead of helping."""

from functools import cache

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
