"""The exercises of lesson 0."""

import torch

from ..draw import Draw
from ..exercise import Answer, exercise
from ..judge import Case
from ..mistakes import map_of_llama as mistakes
from ..properties import Property


def _embed_cases(draw: Draw) -> list[Case]:
    """The smallest numbers first; then sizes that are all different, all equal, and other dtypes."""
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    B, S, H, V = draw.sizes(4)
    n = draw.size(3, 6)
    ids = draw.integers(0, V - 1, B, S)
    return [
        Case((torch.tensor([[2]]), table), "one token"),
        Case((torch.tensor([[2, 0, 2]]), table), "a token twice", gradients=True),
        Case((torch.tensor([[1, 0, 1]]), table), "the largest id does not occur"),
        Case((torch.tensor([[0, 1], [2, 2], [1, 0]]), table), "three texts"),
        Case((ids, draw.weight(V, H)), "[B, S]", gradients=True),
        Case((draw.integers(0, n - 1, n, n), draw.weight(n, n)), "all sizes equal", gradients=True),
        Case((ids, draw.normal(H, V).T), "a transposed view"),
        Case((ids, draw.normal(V, H).double()), "float64"),
        Case((ids, draw.normal(V, H).bfloat16()), "bf16"),
        Case((ids, 100 * draw.normal(V, H).half()), "fp16"),
    ]


def _embed_properties(draw: Draw) -> list[Property]:
    weight = draw.normal(6, 4)
    ids = torch.tensor([[4, 1, 4, 2]])

    def same_id_same_row(f):
        rows = f(ids, weight)
        if torch.equal(rows[0, 0], rows[0, 2]):
            return None
        return "The id 4 stands in two places of a text, and gives two different lists of features."

    def is_a_row(f):
        row = f(ids, weight)[0, 1]
        fits = [i for i in range(6) if torch.allclose(row, weight[i])]
        if fits == [1]:
            return None
        what = f"row {fits[0]} of the table" if fits else "no row of the table at all"
        return f"For the id 1 it gives {what}."

    return [
        Property("not-the-same-row", "What may the features of a token depend on here?", same_id_same_row),
        Property("another-row", "Which row belongs to the id 0, and which to the id 1?", is_a_row),
    ]


@exercise(
    cases=_embed_cases,
    mistakes=mistakes.EMBED,
    properties=_embed_properties,
    hints=(
        "What does the row of the table with the number i hold, and how many rows does one text ask for?",
        "A tensor can be indexed by a tensor of integers. Try it with a list of three ids, and look at the "
        "shape.",
        "Index the first axis of weight by input_ids. The result has the shape of the index, then the rest.",
    ),
)
def embed(input_ids, weight):
    return weight[input_ids]


def _count_cases(draw: Draw) -> list[Case]:
    """V, H, D, L, N, K, d, tied: the smallest first; each of the next changes one thing."""
    small = [
        Case((20, 4, 7, 1, 1, 1, 4, True), "the smallest"),
        Case((20, 4, 7, 1, 1, 1, 4, False), "a head of its own"),
        Case((20, 4, 7, 2, 1, 1, 4, True), "two layers"),
        Case((20, 4, 7, 3, 1, 1, 4, False), "three layers"),
        Case((20, 8, 7, 1, 2, 2, 4, True), "two heads"),
        Case((20, 8, 7, 1, 4, 2, 2, True), "heads that are shared"),
        Case((20, 6, 7, 1, 3, 1, 2, True), "one head for all"),
        Case((20, 8, 7, 1, 1, 1, 4, True), "heads narrower than H / N"),
        Case((20, 4, 7, 1, 2, 2, 6, True), "heads wider than H / N"),
    ]
    models = [
        Case((49152, 576, 1536, 30, 9, 3, 64, True), "SmolLM2-135M"),
        Case((32000, 4096, 11008, 32, 32, 32, 128, False), "Llama-2-7B"),
        Case((128256, 8192, 28672, 80, 64, 8, 128, False), "Llama-3-70B"),
        Case((128256, 3072, 8192, 28, 24, 8, 128, True), "Llama-3.2-3B"),
        Case((50257, 1601, 6401, 48, 25, 5, 65, False), "odd sizes, which fp32 would round"),
    ]
    V, H, D, L = draw.sizes(4, 20, 90)
    K, groups, d = draw.sizes(3, 2, 7)
    drawn = [Case((V, H, D, L, K * groups, K, 2 * d, tied), "drawn") for tied in (True, False)]
    return small + models + drawn


def _count_properties(draw: Draw) -> list[Property]:
    start = {"V": 10, "H": 4, "D": 3, "L": 1, "N": 2, "K": 2, "d": 2, "tied": True}

    def more(f, **change) -> int:
        return f(*(start | change).values()) - f(*start.values())

    def says(name: str, expected: int, what: str, **change):
        def holds(f):
            got = more(f, **change)
            return None if got == expected else f"{what} adds {got:,}; it should add {expected:,}."

        return holds

    small = "With H = 4, D = 3 and 2 heads of 2 features, "
    return [
        Property(
            "vocabulary", "How many numbers has one row of the embedding?",
            says("V", 4, "One more word in a tied vocabulary of rows with 4 features", V=11),
        ),
        Property(
            "head", "What is counted when the head is a tensor of its own?",
            says("tied", 40, "A head of its own for 10 ids and H = 4", tied=False),
        ),
        Property(
            "intermediate", "How many matrices of the feed-forward network have a side D?",
            says("D", 12, small + "one more in D", D=4),
        ),
        Property(
            "layer", "What is in one layer: which matrices, which norms?",
            says("L", 108, small + "a second layer", L=2),
        ),
        Property(
            "query-heads", "Which two of the four matrices grow with the query heads?",
            says("N", 32, small + "two more query heads, with the same key/value heads,", N=4),
        ),
    ]  # fmt: skip


@exercise(
    cases=_count_cases,
    mistakes=mistakes.PARAMETER_COUNT,
    properties=_count_properties,
    hints=(
        "Which matrices and which norms are there once in a model, and which once in each layer?",
        "Go down the printed tree line by line. A Linear(in_features, out_features) without a bias has "
        "in · out numbers, a norm has H. Which sizes are the two of q_proj, and which those of k_proj?",
        "A layer has hidden_size * (2 * n_heads + 2 * n_kv_heads) * head_dim in attention, three matrices "
        "of hidden_size * intermediate_size, and two norms. Outside: the table once or twice, and one norm.",
    ),
)
def parameter_count(
    vocab_size, hidden_size, intermediate_size, n_layers, n_heads, n_kv_heads, head_dim, tied
):
    attention = hidden_size * (2 * n_heads + 2 * n_kv_heads) * head_dim  # q, o; k, v
    feed_forward = 3 * hidden_size * intermediate_size  # gate, up, down
    layer = attention + feed_forward + 2 * hidden_size  # and two norms
    tables = vocab_size * hidden_size * (1 if tied else 2)  # embedding, head
    return tables + n_layers * layer + hidden_size  # and the last norm


logits_shape = Answer(
    "logits_shape",
    lesson=__name__,
    right={"shape": [3, 7, 15], "scores_needed": 45},
    mistakes=mistakes.LOGITS_SHAPE,
    hints=(
        "Which of the sizes does the last step of the way produce, for each token?",
        "Look at the table of shapes: what is the last line? And after which position of a text does its "
        "next token stand?",
        "The scores are [B, S, V]. For the next token of each text you need one row of V, the last: B · V.",
    ),
    because="Every token of every text gets a score for each of the 15 words: [3, 7, 15]. To go on with the "
    "three texts you read the last row of each: 3 · 15 = 45 of 315 scores. (The others say what came next "
    "earlier, which you know. In training they are all used.)",
)


def _target_cases(draw: Draw) -> list[Case]:
    B, S = draw.sizes(2, 3, 9)
    n = draw.size(3, 7)
    return [
        Case((torch.tensor([[5, 6, 7, 8]]),), "one text"),
        Case((torch.tensor([[1, 2, 3], [4, 5, 6]]),), "two texts"),
        Case((torch.tensor([[3, 9], [7, 2]]),), "two tokens"),
        Case((draw.integers(0, 50, B, S),), "[B, S]"),
        Case((draw.integers(0, 50, n, n),), "all sizes equal"),
        Case((draw.integers(0, 50, S, B).T,), "a transposed view"),
    ]


@exercise(
    cases=_target_cases,
    mistakes=mistakes.SHIFTED_TARGETS,
    outputs=("inputs", "targets"),
    hints=(
        "After the first token, which token should the model have predicted?",
        "Write the text on one line, and under each token the one that follows. Which token has none? "
        "Which token is nobody's answer?",
        "inputs is all but the last token of each text, targets all but the first: two slices along axis 1.",
    ),
)
def shifted_targets(input_ids):
    return input_ids[:, :-1], input_ids[:, 1:]


def _append_cases(draw: Draw) -> list[Case]:
    three = torch.tensor([[[5.0, 4, 1, 2, 0], [0, 4, 1, 5, 2], [2, 4, 5, 1, 0]]])  # mean of rows: word 1
    two = torch.tensor([[[0.0, 9, 1], [1, 0, 4]], [[0.0, 1, 9], [7, 2, 3]]])
    B, S, V = draw.sizes(3)
    n = draw.size(3, 6)
    return [
        Case((torch.tensor([[0, 1]]), two[:1])),
        Case((torch.tensor([[4, 4, 1]]), three)),
        Case((torch.tensor([[0, 1], [2, 2]]), two), "two texts"),
        Case((torch.tensor([[1], [0], [2]]), torch.tensor([[[0.0, 3, 1]], [[-1, -2, -3]], [[5, 2, 9]]])),
             "one token"),
        Case((draw.integers(0, V - 1, B, S), draw.normal(B, S, V)), "[B, S]"),
        Case((draw.integers(0, n - 1, n, n), draw.normal(n, n, n)), "all sizes equal"),
        Case((draw.integers(0, V - 1, B, S), draw.normal(B, S, V) - 30), "scores below 0"),
    ]  # fmt: skip


@exercise(
    cases=_append_cases,
    mistakes=mistakes.APPEND_NEXT,
    given=mistakes.APPEND_NEXT["first-position"].functions[0],
    hints=(
        "After which token of the text does the new one come?",
        "best has one id for each position. Which of them was chosen with the whole text in view?",
        "best[:, -1:] is the last column, and keeps its axis.",
    ),
)
def repair_append_next(input_ids, logits):
    best = logits.argmax(-1)  # [B, S]
    return torch.cat((input_ids, best[:, -1:]), dim=1)
