"""The exercises of lesson 11."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ... import llama
from ..draw import Draw
from ..exercise import Answer, exercise
from ..judge import Case
from ..mistakes import whole_llama as mistakes
from ..properties import Property
from ..show import show

# llama_logits


class Llama(llama.Llama):
    """A Llama that is to be called part by part, under the same name; a verdict shows it as `name`."""

    def __init__(self, name: str, **sizes) -> None:
        super().__init__(llama.LlamaConfig(**sizes))
        self.__name__ = name
        self.eval()

    def forward(self, *args, **options) -> Tensor:
        raise RuntimeError("this exercise is model(...) itself: call the parts of the model, one by one")

    def __deepcopy__(self, memo: dict) -> "Llama":
        return _copied(self, {})


def _copied(module: nn.Module, parameters: dict) -> nn.Module:
    """A deep copy in a tenth of copy.deepcopy's time, of modules whose only tensors are parameters."""
    copy = object.__new__(type(module))
    copy.__dict__ = {k: v.copy() if isinstance(v, dict) else v for k, v in module.__dict__.items()}
    for name, parameter in module._parameters.items():
        if parameter is not None:
            if parameter not in parameters:  # a tied one stays one
                parameters[parameter] = nn.Parameter(parameter.detach().clone())
            copy._parameters[name] = parameters[parameter]
    for name, child in module._modules.items():
        copy._modules[name] = _copied(child, parameters)
    return copy


def _by_hand(token, other, norm, what: str, adds: bool = False) -> Llama:
    """Two layers of two features, so that the numbers can be followed by hand.

    They add nothing; or attention alone adds, with one token a matrix times the normalized token: the first
    layer [0, 6] to [1, 1], the second [6, -6] to [1, 7].
    """
    embedding = show(torch.tensor([token, other]))
    name = f"{what}; embedding {embedding}, norm {show(torch.tensor(norm))}, head [[1, 0], [1, 1]]"
    model = Llama(
        name, vocab_size=2, hidden_size=2, intermediate_size=2, num_hidden_layers=2, num_attention_heads=1
    )
    numbers = {
        "model.embed_tokens.weight": [token, other],
        "model.norm.weight": norm,
        "lm_head.weight": [[1.0, 0.0], [1.0, 1.0]],
    }
    if adds:
        numbers |= {f"model.layers.{i}.self_attn.v_proj.weight": [[1.0, 0.0], [0.0, 1.0]] for i in (0, 1)}
        numbers["model.layers.0.self_attn.o_proj.weight"] = [[0.0, 0.0], [2.0, 4.0]]
        numbers["model.layers.1.self_attn.o_proj.weight"] = [[2.0, 4.0], [-2.0, -4.0]]
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if key in numbers:
                parameter.copy_(torch.tensor(numbers[key]))
            elif key.endswith(("o_proj.weight", "down_proj.weight")):
                parameter.zero_()
    return model


def _hostile(draw: Draw, V: int, H: int, D: int, layers: int, heads: int, special="", **sizes) -> Llama:
    """Matrices larger than at the start of training, norm weights away from 1: nothing can hide."""
    tied = ", tied head" if sizes.get("tie_word_embeddings") else ""
    plural = "" if layers == 1 else "s"
    name = f"{layers} layer{plural}, H {H}, V {V}{tied}{', ' if special else ''}{special}"
    model = Llama(
        name, vocab_size=V, hidden_size=H, intermediate_size=D, num_hidden_layers=layers,
        num_attention_heads=heads, **sizes,
    )  # fmt: skip
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.copy_(draw.weight(*parameter.shape))
            else:
                parameter.copy_(0.5 * draw.normal(*parameter.shape))
        model.model.embed_tokens.weight.mul_(2)
    return model


def _louder_and_louder(draw: Draw, V: int, layers: int) -> Llama:
    """Each layer drowns all before it, and the last norm has weight 1: how the stream began is lost."""
    special = "a layer a million times as loud as what it reads, last norm 1"
    model = _hostile(draw, V, 8, 6, layers, 2, special)
    with torch.no_grad():
        model.model.norm.weight.fill_(1)
        for i, layer in enumerate(model.model.layers):
            layer.self_attn.o_proj.weight.mul_(1e6 ** (i + 1))
            layer.mlp.down_proj.weight.mul_(1e6 ** (i + 1))
    return model


def _ids(draw: Draw, V: int, *shape: int) -> Tensor:
    return draw.integers(0, V - 1, *shape)


def _logits_cases(draw: Draw) -> list[Case]:
    """By hand first; then one layer, several, and a model for each thing that is easily overlooked."""
    B, S, V = draw.sizes(3, 3, 7)
    nothing = _by_hand([3.0, 4.0], [4.0, -3.0], [1.0, 2.0], "2 layers that add nothing")
    inert = _by_hand([1.0, 1.0], [1.0, -1.0], [1.0, 1.0], "2 layers that add nothing")
    faint = _by_hand([3e-3, 4e-3], [4e-3, -3e-3], [1.0, 2.0], "2 layers that add nothing")  # shows eps
    path = "layers that take [1, 1] to [1, 7] and [1, 7] to [7, 1]"
    grouped = {"num_key_value_heads": 1, "head_dim": 4}
    stretched = {"rope_scaling": {"rope_type": "dynamic", "factor": 32.0}, "max_position_embeddings": 8}
    made_for_8 = _hostile(draw, 6, 8, 6, 1, 1, "made for 8 tokens (frequencies: dynamic rule)", **stretched)
    return [
        Case((nothing, torch.tensor([[0]]))),
        Case((nothing, torch.tensor([[0, 1]])), "two tokens"),
        Case((_by_hand([1.0, 1.0], [1.0, -1.0], [1.0, 2.0], path, True), torch.tensor([[0]])), "one token"),
        Case((_hostile(draw, 3, 2, 3, 1, 1), torch.tensor([[2, 0, 1]])), "one layer"),
        Case((_hostile(draw, V, 8, 6, 3, 2, **grouped), _ids(draw, V, B, S)), "three layers"),
        Case((_hostile(draw, V, 8, 6, 2, 2, tie_word_embeddings=True), _ids(draw, V, B, S)), "tied head"),
        Case((_hostile(draw, 4, 4, 4, 4, 1), _ids(draw, 4, 4, 4)), "all sizes 4"),
        Case((inert, torch.tensor([[0, 1]])), "a norm that does nothing"),
        Case((faint, torch.tensor([[0, 1]])), "a faint stream"),
        Case((_louder_and_louder(draw, V, 1), _ids(draw, V, B, S)), "a loud layer"),
        Case((_louder_and_louder(draw, V, 2), _ids(draw, V, B, S)), "louder and louder"),
        Case((made_for_8, _ids(draw, 6, 2, 8)), "dynamic"),
        Case((_hostile(draw, V, 8, 6, 1, 2, "bf16").bfloat16(), _ids(draw, V, 2, S)), "bf16", tolerance=0.1),
    ]


def _logits_properties(draw: Draw) -> list[Property]:
    model = _hostile(draw, 5, 4, 6, 2, 1)
    ids = torch.tensor([[1, 2, 3, 4]])
    swapped = torch.tensor([[2, 1, 3, 4]])

    def is_causal(f):
        other = torch.tensor([[1, 2, 3, 0]])
        if torch.allclose(f(model, ids)[:, :3], f(model, other)[:, :3], atol=1e-4):
            return None
        return "Another last token changes the scores after the earlier ones."

    def texts_apart(f):
        alone = f(model, ids)
        together = f(model, torch.cat((ids, swapped)))[:1]
        if torch.allclose(alone, together, atol=1e-4):
            return None
        return "A text gets other scores when a second text stands beside it in the batch."

    def sees_order(f):
        if not torch.allclose(f(model, ids)[:, -1], f(model, swapped)[:, -1], atol=1e-4):
            return None
        return "Two earlier tokens change places, and the scores after the last one stay the same."

    def any_size(f):
        louder = _by_hand([3.0, 4.0], [4.0, -3.0], [1.0, 2.0], "")
        token = torch.tensor([[0]])
        before = f(louder, token)
        louder.model.embed_tokens.weight.data.mul_(100)
        if torch.allclose(before, f(louder, token), rtol=1e-3):
            return None
        return (
            "The layers add nothing, and a hundred times the embedding changes the scores: a last norm would "
            "not let it."
        )

    return [
        Property(
            "not-causal", "Which later token can reach an earlier one, and through which part?", is_causal
        ),
        Property("texts-mixed", "Which of your lines lets one text see another?", texts_apart),
        Property(
            "order-unseen", "Through which two tensors does a layer learn where a token stands?", sees_order
        ),
        Property("size-seen", "What stands between the last layer and the head?", any_size),
    ]


@exercise(
    cases=_logits_cases, mistakes=mistakes.LLAMA_LOGITS, properties=_logits_properties,
    hints=(
        "Which parts does a token pass, from its id to its scores, and which of them more than once?",
        "Print the model: the parts stand there in their order, except one that is asked once, before the "
        "layers. What does that one need, and what does it give?",
        "Five steps: embed_tokens; cos, sin from model.rotary(torch.arange(S), hidden_states.dtype); the "
        "layers in a loop, hidden_states = layer(hidden_states, cos, sin); norm; lm_head.",
    ),
)  # fmt: skip
def llama_logits(model, input_ids):
    hidden_states = model.model.embed_tokens(input_ids)
    positions = torch.arange(input_ids.shape[1], device=input_ids.device)
    cos, sin = model.rotary(positions, hidden_states.dtype)
    for layer in model.model.layers:
        hidden_states = layer(hidden_states, cos, sin)
    hidden_states = model.model.norm(hidden_states)
    return model.lm_head(hidden_states)


# next_token_probabilities


def _scores(*probabilities: float) -> Tensor:
    """Scores whose softmax these are, rounded so that a score can be read."""
    return torch.tensor(probabilities).log()


def _clear(draw: Draw, *shape: int, temperature: float = 1.0, top_k=None, top_p=None) -> Tensor:
    """Random scores where no rounding decides: no two nearly alike, no sum that nearly reaches top_p."""
    while True:
        logits = 2 * draw.normal(*shape)
        gaps = logits.sort(-1)[0].diff(dim=-1)
        p = llama.next_token_probabilities(logits, temperature, top_k)
        sums = p.sort(-1, descending=True)[0].cumsum(-1)
        if gaps.min() > 1e-3 and (top_p is None or (sums - top_p).abs().min() > 1e-3):
            return logits


def _next_cases(draw: Draw) -> list[Case]:
    """One setting at a time, then two that must come in their order, then several rows."""
    four = _scores(0.15, 0.5, 0.3, 0.05)
    n, m, V = draw.sizes(3, 3, 6)
    rows = torch.stack((_scores(0.1, 0.85, 0.05), _scores(0.36, 0.24, 0.4) - 3))
    p = 0.6
    return [
        Case((torch.tensor([0.0, 2.0, 1.0]), 1.0, None, None)),
        Case((torch.tensor([0.0, 2.0, 1.0]), 2.0, None, None), "temperature 2"),
        Case((torch.tensor([0.0, 2.0, 1.0]), 0.5, None, None), "temperature 0.5"),
        Case((torch.tensor([0.0, 2.0, 1.0]), 0.0, None, None), "temperature 0"),
        Case((torch.tensor([-3.0, -1.0, -4.0, -2.0]), 1.0, 2, None), "top_k 2"),
        Case((torch.tensor([0.0, 2.0, 1.0]), 1.0, 1, None), "top_k 1"),
        Case((four, 1.0, None, 0.75), "top_p 0.75"),
        Case((four, 1.0, None, 0.4), "top_p 0.4"),
        Case((four, 1.0, None, 0.85), "top_p 0.85"),
        Case((_scores(0.2, 0.4, 0.1, 0.3), 1.0, 2, 0.5), "top_k before top_p"),
        Case((_scores(0.2, 0.1, 0.64, 0.06), 2.0, None, 0.6), "top_p after temperature"),
        Case((rows, 1.0, None, None), "two rows"),
        Case((rows, 1.0, 2, None), "two rows, top_k 2"),
        Case((rows, 1.0, None, 0.8), "two rows, top_p 0.8"),
        Case((torch.stack((rows, rows.flip(0))), 0.0, None, None), "temperature 0, [2, 2, V]"),
        Case((torch.tensor([1.0, 1.00003, 0.0]), 0.0, None, None), "temperature 0, nearly alike"),
        Case((torch.tensor([1000.0, 1001.0, 999.0]), 1.0, None, None), "large scores"),
        Case((torch.tensor([-30.0, -29.0, -31.0]), 0.002, 2, None), "far below 0, a low temperature"),
        Case((torch.tensor([100.0, 102.0, 101.0, 99.0]), 1.0, 2, None), "large scores, top_k 2"),
        Case((_scores(0.5, 0.3, 0.15, 0.05), 1.0, None, 0.75), "in order already"),
        Case((torch.tensor([[1.0, 1.25, 3.5], [9.5, 9.0, 7.25]]).bfloat16(), 0.7, None, None), "bf16"),
        Case((_clear(draw, n, m, V), 0.8, None, None), "[n, m, V]"),
        Case((_clear(draw, n, V, temperature=1.3, top_k=V - 1, top_p=p), 1.3, V - 1, p), "[n, V]"),
        Case((_clear(draw, n, m, V, temperature=2.0, top_p=p), 2.0, None, p), "[n, m, V]"),
        Case((_clear(draw, 4, 4, 4, temperature=1.5, top_k=3, top_p=0.7), 1.5, 3, 0.7), "all sizes 4"),
        Case((_clear(draw, n, V), 0.0, 2, p), "temperature 0 with the others"),
    ]


def _next_properties(draw: Draw) -> list[Property]:
    logits = _clear(draw, 2, 5, top_p=0.6)

    def adds_up(f):
        for settings in ((1.0, None, None), (2.0, None, None), (1.0, 2, None), (1.0, None, 0.6)):
            total = f(logits, *settings).sum(-1)[0].item()
            if abs(total - 1) > 1e-3:
                shown = ", ".join(f"{n} {v:g}" for n, v in zip(_SETTINGS, settings, strict=True) if v)
                return f"With {shown} the probabilities add up to {total:.4g}."
        return None

    def keeps_order(f):
        if (f(logits, 1.5, None, None).argsort(-1) == logits.argsort(-1)).all():
            return None
        return "At temperature 1.5 the ids are in another order of likelihood than their scores."

    def keeps_k(f):
        kept = (f(logits, 1.0, 2, None) > 0).sum(-1)[0].item()
        return None if kept == 2 else f"With top_k 2, {kept} of five ids have a probability above 0."

    def reaches_p(f):
        p = f(logits, 1.0, None, None)
        reached = p[0][f(logits, 1.0, None, 0.6)[0] > 0].sum().item()
        return None if reached > 0.6 else f"With top_p 0.6, the ids that are kept had {reached:.4g} together."

    return [
        Property("not-1", "Which of your steps is the last that makes a row add up to 1?", adds_up),
        Property("order-changed", "Which step moves probabilities to other ids?", keeps_order),
        Property("not-k", "How many scores should be left above −inf?", keeps_k),
        Property("top-p-not-reached", "Is the id that crosses top_p kept?", reaches_p),
    ]


_SETTINGS = ("temperature", "top_k", "top_p")


@exercise(
    cases=_next_cases, mistakes=mistakes.NEXT_TOKEN, properties=_next_properties,
    hints=(
        "Four steps, each on what the one before has left: which of them change scores, and which "
        "probabilities?",
        "Temperature and top_k come before the softmax, top_p after it. What must a score become, so that "
        "its probability is 0? And how does top_p find its way back from the sorted order?",
        "For 0: one-hot of argmax. Else divide, make what is below topk(top_k).values[..., -1:] −inf, "
        "softmax. With ranked, ids = sort(descending=True), an id goes where ranked.cumsum(-1) - ranked is "
        "at least top_p; scatter puts the mask back; divide by the sum.",
    ),
)  # fmt: skip
def next_token_probabilities(logits, temperature, top_k, top_p):
    logits = logits.float()
    if temperature == 0:
        return F.one_hot(logits.argmax(-1), logits.shape[-1]).float()
    logits = logits / temperature
    if top_k is not None:
        least = logits.topk(min(top_k, logits.shape[-1])).values[..., -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    chances = logits.softmax(-1)
    if top_p is not None:
        ranked, ids = chances.sort(-1, descending=True)
        dropped = ranked.cumsum(-1) - ranked >= top_p
        chances = chances.masked_fill(dropped.scatter(-1, ids, dropped), 0)
    return chances / chances.sum(-1, keepdim=True)


kept_ids = Answer(
    "kept_ids",
    lesson=__name__,
    right={"p_75": 2, "p_85": 3},
    mistakes=mistakes.KEPT_IDS,
    hints=(
        "Add the probabilities up from the largest: what are the four sums?",
        "The ids that are needed to reach top_p are kept. Which sum is the first that reaches it?",
        "The sums are 0.45, 0.8, 0.95 and 1. Count until a sum is at least top_p.",
    ),
    because="0.45 + 0.35 = 0.8 is the first sum that reaches 0.75: two ids. It falls short of 0.85, so the "
    "third, 0.15, is needed as well. What crosses top_p is kept.",
)


# min_p_probabilities


def _min_p_cases(draw: Draw) -> list[Case]:
    """Thresholds well between two probabilities; rows that are sure and rows that are not."""
    n, m, V = draw.sizes(3, 3, 6)
    rows = torch.stack((_scores(0.1, 0.85, 0.05), _scores(0.36, 0.24, 0.4)))
    return [
        Case((_scores(0.2, 0.4, 0.1, 0.3), 0.35)),
        Case((_scores(0.2, 0.4, 0.1, 0.3), 0.6), "two are kept"),
        Case((_scores(0.2, 0.4, 0.1, 0.3), 0.9), "one is kept"),
        Case((_scores(0.2, 0.4, 0.1, 0.3), 1.0), "min_p 1"),
        Case((_scores(0.01, 0.9, 0.03, 0.06), 0.05), "a sure model"),
        Case((torch.tensor([-3.0, -1.0, -4.0, -2.0]), 0.2), "scores below 0"),
        Case((rows, 0.5), "two rows"),
        Case((rows.flip(0), 0.5), "two rows"),
        Case((torch.tensor([100.0, 101.0, 99.0]), 0.2), "large scores"),
        Case((_apart(draw, 0.2, n, m, V), 0.2), "[n, m, V]"),
        Case((_apart(draw, 0.1, 4, 4, 4), 0.1), "all sizes 4"),
    ]


def _apart(draw: Draw, min_p: float, *shape: int) -> Tensor:
    """Random scores, none near the threshold."""
    while True:
        logits = 2 * draw.normal(*shape)
        below = logits.log_softmax(-1) - logits.log_softmax(-1).amax(-1, keepdim=True)
        if (below.exp() - min_p).abs().min() > 1e-3:
            return logits


def _min_p_properties(draw: Draw) -> list[Property]:
    logits = _apart(draw, 0.2, 2, 5)

    def adds_up(f):
        total = f(logits, 0.2).sum(-1)[0].item()
        return None if abs(total - 1) < 1e-3 else f"The probabilities of a row add up to {total:.4g}."

    def ignores_a_shift(f):
        if torch.allclose(f(logits, 0.2), f(logits + 5, 0.2), atol=1e-4):
            return None
        return "Five more for every score changes the result: it should not, since the softmax ignores it."

    def keeps_likeliest(f):
        kept = f(logits, 0.99).gather(-1, logits.argmax(-1, keepdim=True))
        return None if (kept > 0.5).all() else "With min_p 0.99 the likeliest id is not the one that is kept."

    return [
        Property("not-1", "What do you divide by at the end?", adds_up),
        Property("shift-seen", "Do you compare scores, or probabilities?", ignores_a_shift),
        Property(
            "likeliest-lost", "How many times as likely as itself is the likeliest id?", keeps_likeliest
        ),
    ]


@exercise(
    cases=_min_p_cases, mistakes=mistakes.MIN_P, properties=_min_p_properties,
    hints=(
        "Beside which id is each of the others measured?",
        "Work with probabilities. What is the threshold of a row, and how does it keep its axis?",
        "With p the softmax, p < min_p * p.amax(-1, keepdim=True) becomes 0. Divide by the sum of the row.",
    ),
)  # fmt: skip
def min_p_probabilities(logits, min_p):
    probabilities = logits.softmax(-1)
    least = min_p * probabilities.amax(-1, keepdim=True)
    probabilities = probabilities.masked_fill(probabilities < least, 0)
    return probabilities / probabilities.sum(-1, keepdim=True)


# repair_top_p


def _stops_too_early(probabilities, top_p):
    ranked, ids = probabilities.sort(-1, descending=True)
    dropped = ranked.cumsum(-1) > top_p
    kept = probabilities.masked_fill(dropped.scatter(-1, ids, dropped), 0)
    return kept / kept.sum(-1, keepdim=True)


def _repair_cases(draw: Draw) -> list[Case]:
    """First what shows numbers, then what leaves nothing."""
    four = torch.tensor([0.15, 0.5, 0.3, 0.05])
    n, m, V = draw.sizes(3, 3, 6)
    rows = torch.tensor([[0.1, 0.85, 0.05], [0.36, 0.24, 0.4]])
    return [
        Case((four, 0.75)),
        Case((four, 0.4), "the first alone is above top_p"),
        Case((four, 0.85)),
        Case((rows, 0.8), "two rows"),
        Case((rows.flip(0), 0.7), "two rows"),
        Case((_clear(draw, n, V, top_p=0.6).softmax(-1), 0.6), "[n, V]"),
        Case((_clear(draw, n, m, V, top_p=0.9).softmax(-1), 0.9), "[n, m, V]"),
        Case((_clear(draw, 4, 4, 4, top_p=0.7).softmax(-1), 0.7), "all sizes 4"),
    ]


@exercise(
    cases=_repair_cases, mistakes=mistakes.REPAIR_TOP_P, given=_stops_too_early,
    hints=(
        "With probabilities 0.5, 0.3, 0.15, 0.05 and top_p 0.4: which ids does it keep, and which are "
        "needed?",
        "Whose probability is in the sum that is compared with top_p: only those before an id, or its own "
        "as well?",
        "Take the id's own probability out of the sum: cumsum minus ranked. It goes when that is at least "
        "top_p.",
    ),
)  # fmt: skip
def repair_top_p(probabilities, top_p):
    ranked, ids = probabilities.sort(-1, descending=True)
    dropped = ranked.cumsum(-1) - ranked >= top_p
    kept = probabilities.masked_fill(dropped.scatter(-1, ids, dropped), 0)
    return kept / kept.sum(-1, keepdim=True)
