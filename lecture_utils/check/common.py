"""Mistakes that any function can make, and questions that fit any function that does not come to numbers."""

from .mistake import Mistake

# Mistakes that any function can make; the hints are theirs, wherever they happen.
INPUT_CHANGED = Mistake(
    "input-changed",
    "Your function writes into its input.",
    (
        "The caller still needs that tensor. Which of your lines writes into it?",
        "Look for `+=`, `*=`, `x[...] = …` and methods that end in `_`.",
        "`y = x * 2` makes something new, `x *= 2` does not; and `x.float()` of an fp32 tensor is that "
        "tensor "
        "itself. Or begin with `x = x.clone()`.",
    ),
    (),
)
GRADIENT_CUT = Mistake(
    "gradient-cut",
    "The values are right, but no gradient comes back: training would stop here.",
    (
        "Which line leaves PyTorch's record of what was computed?",
        "Look for `.detach()`, `.data`, `.item()`, `.numpy()`, `torch.tensor(…)` and `no_grad`.",
        "Compute with the tensors themselves, from the first line to the last, and the gradient finds its "
        "way.",
    ),
    (),
)
RANDOM = Mistake(
    "random",
    "The same input gave two different outputs.",
    (
        "What in your function is not decided by its arguments?",
        "Look for random numbers (`randn`, `dropout`), and for something kept from an earlier call.",
        "All that the result may depend on comes in as an argument.",
    ),
    (),
)


# What to ask when a call raises, by words of the message.
BY_MESSAGE = {
    "NameError": (
        "Is that name spelled as where it was given?",
        "Look for it in the arguments, and on the left of an `=` further up.",
        "Python names what it does not know. Write it as it is spelled where it comes from.",
    ),
    "NoneType": (
        "Which function that yours calls returns nothing yet?",
        "Is it an exercise of its own, still with its dots?",
        "Write that one first; its own checker says when it is right.",
    ),
    "Boolean value of Tensor": (
        "`if`, `and` and `max` ask about one number. How many has your tensor?",
        "What is to happen to each entry on its own? torch has functions for that.",
        "torch.where chooses entry by entry; clamp, F.relu and torch.sigmoid work on every entry.",
    ),
    "converted to Python scalar": (
        "A function of `math` takes one number. How many has your tensor?",
        "torch has the same functions for whole tensors.",
        "x.exp(), x.cos(), x.sqrt() in the place of math.exp(x), math.cos(x), math.sqrt(x).",
    ),
    "unsupported operand type": (
        "Of which types are the two things on both sides of that sign?",
        "A module that was made is not a tensor yet, and nor is a function that was not called.",
        "nn.SiLU() makes a module; nn.SiLU()(z) calls it, as F.silu(z) does.",
    ),
    "to unpack": (
        "How many things are on the right of that `=`, and how many names on its left?",
        "Print what is on the right. Along which axis was it cut, and into how many pieces?",
        "chunk(2, dim=-1) gives two pieces along the last axis.",
    ),
    "return_types": (
        "A function of torch with an axis gives two things there: values and places. Which did you want?",
        "torch.max(h, 0) looks along axis 0. Is that what the formula asks for?",
        "For the larger of each number and 0: F.relu, or clamp(min=0). For values along an axis: amax.",
    ),
}

# What to ask when a call does not come back with numbers to compare, by the kind of the problem. The third
# hint is that of the exercise.
BY_KIND = {
    "raises": (
        "What does the message complain of: a name, a type, a shape, an axis?",
        "Print what stands in that line, its type and its shape, on the input above. Which of it is not "
        "what you meant?",
    ),
    "wrong-type": (
        "What does your last line return?",
        "Compare what it returns with what the exercise asks for: how many things, and of which type?",
    ),
    "shape": (
        "Which of your lines gives the result its shape?",
        "Follow the shape line by line, from the input above to what came back.",
    ),
    "dtype": (
        "Which of your lines changes the dtype?",
        "Follow the dtype line by line. Where should it become that of the input again?",
    ),
    "device": (
        "Which of your lines makes a tensor on another device?",
        "Look for tensors that you make anew, and for `.cpu()` and `.to(…)`.",
    ),
    "too-slow": (
        "Is there a loop that does not end?",
        "What has to become false for the `while` to end, and does it change?",
    ),
}
