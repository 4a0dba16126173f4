"""The tables of measures: whoever adds one adds it here, and its oracle is demanded by the tests."""

from collections.abc import Callable

from torch import Tensor

from ranklib.measures.attention import (
    attention_entropy,
    dobrushin,
    spectral_gap,
)
from ranklib.measures.spectrum import (
    effective_rank,
    gram_stable_rank,
    isometry_gap,
    participation_ratio,
    stable_rank,
)
from ranklib.measures.tokens import (
    composite_residual,
    dirichlet_energy,
    hc_dc,
    mean_average_distance,
    mean_cosine,
    mu,
    oscillation,
    relative_residual,
)

# The measures of X that need no further argument.
MEASURES: dict[str, Callable[..., Tensor]] = {
    measure.__name__: measure
    for measure in (
        composite_residual,
        mu,
        relative_residual,
        hc_dc,
        oscillation,
        stable_rank,
        gram_stable_rank,
        effective_rank,
        participation_ratio,
        mean_cosine,
        mean_average_distance,
        dirichlet_energy,
        isometry_gap,
    )
}
"""The measures of tokens by name, each a function of (..., tokens, dim)."""

# The measures of an attention matrix.
ATTENTION_MEASURES: dict[str, Callable[..., Tensor]] = {
    measure.__name__: measure for measure in (attention_entropy, spectral_gap, dobrushin)
}
"""The measures of attention matrices by name."""
