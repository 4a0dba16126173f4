"""Rank collapse in self-attention: sizes, residuals, measures, layers, exact propagation, derivations.

The library of the book. Rows of X are tokens; leading axes are batch; theory is done in float64.
This is the front door: what several chapters use, grouped by the room that it comes from. The rest of a room
is in the room: ``from ranklib import theory``. A name is imported when it is first used.

>>> import ranklib as rl
>>> rl.max_row_sum(rl.causal_mask(3).double())
tensor(3., dtype=torch.float64)
"""

import os

from ranklib._door import door

# Threads without work sleep instead of spinning: beside a busy core that is 1 ms instead of 100. OpenMP reads it
# when torch is loaded, so it helps where ranklib is imported first; a choice made outside stands.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.1.0"

__all__, __getattr__, __dir__ = door(
    __name__,
    {
        "model": "SelfAttention Layer Network scores score_parts pruned_scores attention_matrix "
        "naive_softmax causal_mask window_mask relative_bias alibi_bias rotary_scores",
        "paper": "composite max_col_sum max_row_sum mean_centre median_centre midrange_centre mean_residual "
        "median_residual composite_about residual_size residual_size_exact beta f_slope check_layer "
        "printed_depth proved_depth skip_corollary outlier_residual row_wise_l1 row_wise_l2",
        "exact": "ResidualState propagate propagate_layer trajectory",
        "measures": "MEASURES composite_residual relative_residual mu hc_dc oscillation mean_cosine "
        "mean_average_distance dirichlet_energy stable_rank gram_stable_rank effective_rank "
        "participation_ratio numerical_rank attention_entropy dobrushin spectral_gap",
        "theory": "PROOF_STEPS diameter log10_diameter count_paths enumerate_paths sample_paths length_distribution "
        "length_spectrum attained check_mlp_layer check_norms check_slow_decay check_step column_norm lambda_1 "
        "lambda_inf skip_maximum slow_law",
        "tracing": "trace deep_trace load_model tokenise why_missing Missing",
        "experiments": "EXPERIMENTS load_record current_size current_device",
        "proofs": "derivation all_derivations",
        "exercises": "check",
        "book": "use_book_style ROLES role tints label label_end shade_floor draw_matrix explore biographies",
    },
)
