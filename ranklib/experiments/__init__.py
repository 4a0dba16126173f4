"""Experiments with two sizes, and their records."""

from ranklib._door import door

__all__, __getattr__, __dir__ = door(
    __name__,
    {
        "record": "SIZES Experiment current_size current_device load_record",
        "registry": "EXPERIMENTS",
        "architectures": "BARE VARIANTS curves",
        "worst_case": "slacks_at_initialisation slacks_with_trained_weights random_losses worst_over_typical "
        "whole_blocks",
        "tasks": "arc_steps sorting sorting_baseline convex_hull hull_share random_labels shuffled_symbols",
        "token_model": "TokenModel",
        "training": "Recipe Trained train",
        "arcs": "gap outcome growth free_run",
        "path_accuracy": "expected_distinct frozen_step recomputed_step walk evaluate_paths evaluate_exact coverage",
    },
)
