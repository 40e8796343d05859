"""Pictures that answer the hand: one module a lesson, classes to put at the end of a notebook's cell.

Every one is an `Explorer` (in `lecture_utils.explore.explorer`): controls, a picture, and a caption that
says in words what the picture shows now. They work with the keyboard alone: Tab, then the arrow keys.
"""
