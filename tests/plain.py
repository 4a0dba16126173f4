"""The library as users have it: without the shape checker that conftest.py installs."""

import importlib
import sys
from types import ModuleType


def import_plain(name: str) -> ModuleType:
    """A second, unchecked copy of a ``ranklib`` module; the checked one stays the one that tests import."""

    def ours():
        return {key: module for key, module in sys.modules.items() if key.split(".")[0] == "ranklib"}

    checked, finders = ours(), sys.meta_path[:]
    for key in checked:
        del sys.modules[key]
    sys.meta_path[:] = [f for f in finders if not type(f).__module__.startswith("jaxtyping")]
    try:
        return importlib.import_module(name)
    finally:
        sys.meta_path[:] = finders
        for key in ours():
            del sys.modules[key]
        sys.modules.update(checked)


def raises_its_own_message(kind: type[Exception] | tuple, function, *arguments, **options) -> str:
    """The text of the error, which must be of that very class and say expected, got and the remedy."""
    try:
        result = function(*arguments, **options)
    except Exception as error:
        kinds = kind if isinstance(kind, tuple) else (kind,)
        assert type(error) in kinds, f"{type(error)}: {error}"
        assert "expected" in str(error) and "got" in str(error) and ";" in str(error), error
        return str(error)
    raise AssertionError(f"{function.__name__} returned {result}")
