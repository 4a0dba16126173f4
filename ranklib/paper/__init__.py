"""The paper's theorem in its own size: norms, centres, bounds, and where they break."""

from ranklib._door import door

__all__, __getattr__, __dir__ = door(
    __name__,
    {
        "norms": "composite max_col_sum max_row_sum",
        "centres": "mean_centre median_centre midrange_centre col_sum row_sum residual_about mean_residual "
        "median_residual composite_about",
        "least": "CertifiedResidual residual_size residual_size_exact",
        "constants": "kappa vartheta const_osc const_osc_heads f_slope f_lambda g_slope g_lambda middle "
        "memorable x_star shape_limit",
        "sizes": "LayerSizes layer_sizes osc osc_row lam oscillation_of_scores",
        "bounds": "BOUNDS Bound bound_value",
        "checks": "LayerCheck measure_layer check_layer check_network",
        "depth": "Beta beta printed_depth converges DepthBound proved_depth",
        "counterexamples": "Instance two_heads four_tokens diagonal_step signed_step skip_corollary "
        "outlier_residual row_wise_l1 row_wise_l2",
        "movers": "Movers clean_movers clean_family pocket_family best_movers",
        "special_queries": "Specials special_limit refuting_3573 best_specials best_ratios",
    },
)
