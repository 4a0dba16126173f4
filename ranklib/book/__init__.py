"""What the pages need: style, sliders, texts."""

from ranklib._door import door

__all__, __getattr__, __dir__ = door(
    __name__,
    {
        "style": "PANEL STACK ROLES Role role shade_floor draw_matrix tints",
        "pictures": "use_book_style",
        "labels": "label label_end",
        "sliders": "Explorer explore",
        "texts": "Biography biographies",
    },
)
