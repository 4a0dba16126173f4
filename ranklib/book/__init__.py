"""What the pages need: style, sliders, texts."""

from ranklib._door import door

__all__, __getattr__, __dir__ = door(
    __name__,
    {
        "style": "PANEL STACK ROLES Role use_book_style role shade_floor draw_matrix tints",
        "labels": "label label_end",
        "sliders": "Explorer explore",
        "texts": "Biography biographies",
    },
)
