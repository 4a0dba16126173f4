"""Self-attention layers and networks, as the book's theory and the paper have them."""
