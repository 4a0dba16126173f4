"""Measures of tokens, spectra and attention matrices."""

from ranklib._door import door

__all__, __getattr__, __dir__ = door(
    __name__,
    {
        "tokens": "composite_residual relative_residual mu hc_dc oscillation mean_cosine "
        "mean_average_distance dirichlet_energy",
        "spectrum": "stable_rank gram_stable_rank effective_rank participation_ratio numerical_rank "
        "isometry_gap",
        "attention": "attention_entropy dobrushin spectral_gap",
        "table": "MEASURES ATTENTION_MEASURES",
    },
)
