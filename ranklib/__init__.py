"""Rank collapse in self-attention: sizes, residuals, measures, layers, exact propagation, derivations.

The library of the book. Rows of X are tokens; leading axes are batch; theory is done in float64.
"""

from ranklib.book.labels import label, label_end
from ranklib.book.sliders import explore
from ranklib.book.style import PANEL, ROLES, STACK, draw_matrix, role, shade_floor, tints, use_book_style
from ranklib.exact.propagation import ResidualState, propagate, propagate_layer, trajectory
from ranklib.experiments.path_accuracy import evaluate_exact, evaluate_paths
from ranklib.measures.attention import (
    attention_entropy,
    dobrushin,
    inverse_participation,
    singular_gap,
    spectral_gap,
)
from ranklib.measures.spectrum import (
    effective_rank,
    gram_stable_rank,
    isometry_gap,
    numerical_rank,
    participation_ratio,
    stable_rank,
)
from ranklib.measures.table import MEASURES
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
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer, Network
from ranklib.model.positions import alibi_bias, relative_bias, rotary_scores
from ranklib.model.softmax import (
    attention_matrix,
    causal_mask,
    naive_softmax,
    pruned_scores,
    score_parts,
    scores,
    window_mask,
)
from ranklib.paper.centres import (
    col_sum,
    composite_about,
    mean_centre,
    mean_residual,
    median_centre,
    median_residual,
    midrange_centre,
    residual_about,
    row_sum,
)
from ranklib.paper.least import CertifiedResidual, residual_size, residual_size_exact
from ranklib.paper.norms import composite, max_col_sum, max_row_sum
from ranklib.theory.layernorm import affine_rank, column_norm, layer_norm, rms_norm, row_std
from ranklib.theory.masks import ProductCheck, asymptotic_rate, check_product, difference_map
from ranklib.theory.mlps import attained, check_mlp, check_mlp_layer, lambda_1, lambda_inf, lip
from ranklib.theory.path_sums import length_spectrum
from ranklib.theory.paths import (
    bias_row,
    count_paths,
    enumerate_paths,
    frozen_attention,
    length_distribution,
    path_matrices,
    path_output,
    sample_paths,
)
from ranklib.theory.skips import check_norms, check_slow_decay, check_step, cosine_with_skips
from ranklib.tracing.deep import DeepTrace, as_network

__version__ = "0.1.0"
