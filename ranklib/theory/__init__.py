"""What the main line of the book proves: paths, skips, MLPs, LayerNorm, masks."""

from ranklib._door import door

__all__, __getattr__, __dir__ = door(
    __name__,
    {
        "sizes": "NORMS diameter log10_diameter score_size value_size operator_size",
        "diameters": "tilt_bound tilt_range layer_share cubic_constant bound_depth wait_layers extreme_layer",
        "block": "bound_skip mlp_size norm_size position_range mask_contraction BlockBound bound_block",
        "slack": "PROOF_STEPS Slack typical_sizes measure_slack measure_slacks",
        "paths": "count_paths length_distribution enumerate_paths sample_paths frozen_attention "
        "path_matrices path_output bias_row",
        "path_sums": "length_spectrum bias_part",
        "skips": "ledgers check_norms check_step SlowDecay check_slow_decay slow_law skip_maximum "
        "cosine_with_skips",
        "mlps": "lambda_1 lambda_inf lip attained check_mlp_layer",
        "layernorm": "row_std layer_norm rms_norm column_norm fold_factor affine_rank circle_trace peak "
        "held_pair rank_two",
        "masks": "difference_map asymptotic_rate ProductCheck check_product",
    },
)
