"""What the pages need: style, sliders, texts."""
