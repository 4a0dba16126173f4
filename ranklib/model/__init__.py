"""Self-attention layers and networks, as the book's theory and the paper have them."""

from ranklib._door import door

__all__, __getattr__, __dir__ = door(
    __name__,
    {
        "softmax": "scores score_parts pruned_scores raw_scores attention_matrix naive_softmax causal_mask "
        "window_mask",
        "attention": "SelfAttention",
        "layers": "NORMS ACTIVATIONS Layer Network",
        "positions": "relative_bias alibi_bias rotary_scores",
    },
)
