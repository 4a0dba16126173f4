"""Arguments are checked once, at the public door, not in every room that they pass."""

import inspect
import sys
from collections import Counter

import pytest
import torch

from benchmarks.calls import computing_calls
from ranklib._checks import require_float

REQUIRE_FLOAT = inspect.unwrap(require_float).__code__
CALLS = computing_calls("small")


def times_checked(call):
    """How often ``require_float`` sees each of the call's own tensors."""
    own = {id(value): name for name, value in call.keywords.items() if isinstance(value, torch.Tensor)}
    own |= {id(value): "x" for value in call.args}
    storage = {
        value.data_ptr(): own[id(value)]
        for value in [*call.keywords.values(), *call.args]
        if id(value) in own
    }
    seen, entered = Counter(), Counter()

    def watch(frame, event, _):
        if event == "call" and frame.f_code is REQUIRE_FLOAT:
            value = frame.f_locals["value"]
            entered["all"] += 1
            if isinstance(value, torch.Tensor) and value.data_ptr() in storage:
                seen[storage[value.data_ptr()]] += 1

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen, entered["all"], len(own)


# A layer is a module with a door of its own: asked for its output, it checks what it gets.
AGAIN = {"theory.bound_block", "theory.frozen_attention"}


@pytest.mark.parametrize("name", CALLS)
def test_no_argument_is_checked_twice(name):
    seen, _, _ = times_checked(CALLS[name])
    assert name in AGAIN or max(seen.values(), default=0) <= 1, (name, seen)


@pytest.mark.parametrize("name", [name for name in CALLS if name.startswith("measures.")])
def test_a_measure_checks_nothing_but_its_arguments(name):
    _, entered, arguments = times_checked(CALLS[name])
    assert entered <= arguments
