"""Shapes in the signatures are enforced here, and only here: users pay nothing for them."""

from jaxtyping import install_import_hook

hook = install_import_hook("ranklib", "beartype.beartype")
