"""Llama, taken apart and put back together: the code behind the notebooks.

`llama`   the parts of the model, one a file (imports nothing but torch)
`parity`  each part held against Hugging Face's: values and gradients
`plots`   the pictures of the lessons
`predict` the question that opens each lesson
"""
