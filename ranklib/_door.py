"""Doors: a package offers names of its modules and imports a module when one of its names is first used."""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def door(
    package: str, offers: Mapping[str, str]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """``__all__``, ``__getattr__`` and ``__dir__`` of a package (PEP 562).

    Parameters
    ----------
    package
        ``__name__`` of the package.
    offers
        Module or room, relative to the package, and the names that it offers, between spaces.

    Raises
    ------
    AttributeError
        On use, for a name that is neither offered nor a module of the package.
    """
    home = {name: module for module, names in offers.items() for name in names.split()}

    def get(name: str) -> Any:
        namespace = sys.modules[package]
        if name in home:
            value = getattr(importlib.import_module(f"{package}.{home[name]}"), name)
        elif name.startswith("_"):
            raise AttributeError(f"{package}: no attribute {name!r}", name=name, obj=namespace)
        else:
            try:
                value = importlib.import_module(f"{package}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{package}.{name}":
                    raise
                raise AttributeError(
                    f"{package}: expected one of its names, got {name!r}; dir({package}) lists them",
                    name=name,
                    obj=namespace,
                ) from None
        setattr(namespace, name, value)
        return value

    return list(home), get, lambda: sorted({*vars(sys.modules[package]), *home})
