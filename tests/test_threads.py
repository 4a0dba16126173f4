"""Inside the context numpy and scipy call BLAS on one thread; outside, and in torch, nothing has changed."""

import numpy as np
import torch
from threadpoolctl import threadpool_info

from ranklib._threads import one_blas_thread


def blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_one_thread_inside_and_as_before_outside():
    np.linalg.svd(np.ones((3, 2)))
    before, torch_threads = blas_threads(), torch.get_num_threads()
    assert before, "numpy has brought no BLAS"
    for _ in range(2):
        with one_blas_thread():
            assert set(blas_threads()) == {1} and torch.get_num_threads() == torch_threads
        assert blas_threads() == before
