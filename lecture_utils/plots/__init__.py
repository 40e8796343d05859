"""The pictures of the lessons: one module a lesson, functions that draw on the axes they are given.

Every module has `IMAGES`: the files of `images/` by name, each with the function that draws it on a
figure. `python -m lecture_utils.plots` draws them all.
"""
