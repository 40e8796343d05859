"""Mistakes on the way from ids to logits, and from logits to the next token."""

import torch
import torch.nn.functional as F

from ..mistake import Catalogue

LLAMA_LOGITS = Catalogue()
NEXT_TOKEN = Catalogue()
KEPT_IDS = Catalogue()
MIN_P = Catalogue()
REPAIR_TOP_P = Catalogue()


# llama_logits: the steps, each right, to be put together wrongly


def _turns(model, hidden, positions=None):
    """cos and sin of a forward pass; by default of the right positions."""
    if positions is None:
        positions = torch.arange(hidden.shape[1], device=hidden.device)
    return model.rotary(positions, hidden.dtype)


def _through(model, hidden, layers=None, turns=None):
    """Some layers, each after the other; by default all of them."""
    turns = _turns(model, hidden) if turns is None else turns
    for layer in model.model.layers if layers is None else layers:
        hidden = layer(hidden, *turns)
    return hidden


def _scores(model, hidden):
    return model.lm_head(model.model.norm(hidden))


def _logits(model, input_ids):
    return _scores(model, _through(model, model.model.embed_tokens(input_ids)))


@LLAMA_LOGITS.add(
    "final-norm-forgotten",
    "The head gets the stream as the last layer leaves it: the last norm is missing.",
    "Every layer adds to the stream. Who brings it back to one size, before it is scored?",
    "List the parts of `model.model`. Which of them does your function never call?",
    "Between the last layer and model.lm_head comes model.model.norm.",
)
def _(model, input_ids):
    return model.lm_head(_through(model, model.model.embed_tokens(input_ids)))


@LLAMA_LOGITS.add(
    "norm-after-every-layer",
    "The last norm is used after every layer: it stands inside the loop.",
    "How many times does a Llama use the last norm in one pass?",
    "Look at the indent of the line with the norm. What comes back into the loop from it?",
    "Move model.model.norm out of the loop, to the line of the head.",
)
def _(model, input_ids):
    hidden = model.model.embed_tokens(input_ids)
    turns = _turns(model, hidden)
    for layer in model.model.layers:
        hidden = model.model.norm(layer(hidden, *turns))
    return model.lm_head(hidden)


@LLAMA_LOGITS.also("norm-after-every-layer")
def _(model, input_ids):
    hidden = model.model.embed_tokens(input_ids)
    turns = _turns(model, hidden)
    for layer in model.model.layers:
        hidden = model.model.norm(layer(hidden, *turns))
    return _scores(model, hidden)


@LLAMA_LOGITS.add(
    "norm-before-every-layer",
    "The last norm is used before every layer: what a layer adds to is no longer the stream.",
    "Has a layer norms of its own?",
    "Print a layer: two norms stand in it. Where does `model.model.norm` stand when you print the model?",
    "hidden_states goes into a layer as it came out of the one before; model.model.norm comes after the "
    "loop.",
)
def _(model, input_ids):
    hidden = model.model.embed_tokens(input_ids)
    turns = _turns(model, hidden)
    for layer in model.model.layers:
        hidden = layer(model.model.norm(hidden), *turns)
    return model.lm_head(hidden)


@LLAMA_LOGITS.also("norm-before-every-layer")
def _(model, input_ids):
    hidden = model.model.embed_tokens(input_ids)
    turns = _turns(model, hidden)
    for layer in model.model.layers:
        hidden = layer(model.model.norm(hidden), *turns)
    return _scores(model, hidden)


@LLAMA_LOGITS.add(
    "norm-before-the-layers",
    "The last norm is applied to the embedding, before the first layer.",
    "Which vectors are to have one size: those that go into the stack, or those that come out?",
    "Follow a token from its row of the embedding. What is the first thing that a Llama does with it?",
    "The embedding goes straight into the first layer. model.model.norm comes after the last one.",
)
def _(model, input_ids):
    return model.lm_head(_through(model, model.model.norm(model.model.embed_tokens(input_ids))))


@LLAMA_LOGITS.also("norm-before-the-layers")
def _(model, input_ids):
    return _scores(model, _through(model, model.model.norm(model.model.embed_tokens(input_ids))))


@LLAMA_LOGITS.add(
    "norm-without-weight",
    "The last norm divides by the root mean square, and its weight is left out.",
    "The last norm has learned something too. What, and where is it in your function?",
    "model.model.norm is a module of lesson 2, with a parameter of H numbers.",
    "Call model.model.norm itself: it knows its weight and its eps.",
)
def _(model, input_ids):
    hidden = _through(model, model.model.embed_tokens(input_ids))
    return model.lm_head(F.rms_norm(hidden, hidden.shape[-1:], None, model.config.rms_norm_eps))


@LLAMA_LOGITS.add(
    "norm-of-a-layer",
    "The norm before the head is one of a layer's own, not the last norm of the model.",
    "A Llama of L layers has 2L + 1 norms. Which of them stands alone?",
    "Print the model: which norm is in no layer?",
    "model.model.norm.",
)
def _(model, input_ids):
    hidden = _through(model, model.model.embed_tokens(input_ids))
    return model.lm_head(model.model.layers[-1].post_attention_layernorm(hidden))


@LLAMA_LOGITS.also("norm-of-a-layer")
def _(model, input_ids):
    hidden = _through(model, model.model.embed_tokens(input_ids))
    return model.lm_head(model.model.layers[0].input_layernorm(hidden))


@LLAMA_LOGITS.add(
    "positions-from-1",
    "It counts positions from 1. RoPE sees differences only, so most inputs cannot show it. Here the last "
    "position lies beyond the length that the model was made for, and the dynamic rule stretches.",
    "Which position has the first token, and by which angle is it turned?",
    "S tokens have S positions. Which is your smallest, and which your largest?",
    "torch.arange(S): from 0 to S − 1.",
    on="dynamic",
)
def _(model, input_ids):
    hidden = model.model.embed_tokens(input_ids)
    return _scores(
        model, _through(model, hidden, turns=_turns(model, hidden, torch.arange(1, hidden.shape[1] + 1)))
    )


@LLAMA_LOGITS.add(
    "positions-go-on-over-texts",
    "It numbers the tokens of all texts in one row: the second text begins where the first ended. RoPE sees "
    "differences only, so most inputs cannot show it. Here the last positions lie beyond the length that the "
    "model was made for, and the dynamic rule stretches.",
    "Do the texts of a batch stand behind each other, or side by side?",
    "Print your positions for two texts. Which position has the first token of the second?",
    "torch.arange(S), the same for every text.",
    on="dynamic",
)
def _(model, input_ids):
    hidden = model.model.embed_tokens(input_ids)
    positions = torch.arange(input_ids.numel()).view_as(input_ids)
    return _scores(model, _through(model, hidden, turns=_turns(model, hidden, positions)))


@LLAMA_LOGITS.add(
    "all-at-position-0",
    "Every token gets position 0: nothing is turned, and the order of the tokens is lost to attention.",
    "How does a layer know which of two earlier tokens came first?",
    "Print the positions that you give to `model.rotary`. How many different ones are there?",
    "One position for each token, counted from 0: torch.arange of the number of tokens.",
)
def _(model, input_ids):
    hidden = model.model.embed_tokens(input_ids)
    zeros = torch.zeros(hidden.shape[1], dtype=torch.long)
    return _scores(model, _through(model, hidden, turns=_turns(model, hidden, zeros)))


@LLAMA_LOGITS.add(
    "ids-for-positions",
    "The token ids themselves go into `model.rotary`: a token is turned by what it is, not by where it "
    "stands.",
    "What is turned by an angle: a word, or a place in the text?",
    "`model.rotary` takes positions. Does the text say what they are, or how many there are?",
    "torch.arange(S), with S = input_ids.shape[1].",
)
def _(model, input_ids):
    hidden = model.model.embed_tokens(input_ids)
    return _scores(model, _through(model, hidden, turns=_turns(model, hidden, input_ids)))


@LLAMA_LOGITS.add(
    "positions-of-texts",
    "It counts positions along the batch: as many as there are texts, not tokens.",
    "Which axis of `input_ids` [B, S] does a token move along when the text goes on?",
    "Print the shape of your `cos`. How many rows has it, and how many tokens has a text?",
    "torch.arange(input_ids.shape[1]).",
)
def _(model, input_ids):
    hidden = model.model.embed_tokens(input_ids)
    return _scores(model, _through(model, hidden, turns=_turns(model, hidden, torch.arange(hidden.shape[0]))))


@LLAMA_LOGITS.add(
    "turned-backwards",
    "cos and sin are exchanged, or the positions run backwards: to attention both are the same, the turn "
    "goes the other way.",
    "At position 0 nothing is turned. Which of cos and sin is 1 there, and which is 0?",
    "In which order does `model.rotary` give its two results, and in which does a layer take them? And "
    "which way do your positions run?",
    "cos, sin = model.rotary(…) and layer(hidden_states, cos, sin): the same order twice; positions from "
    "torch.arange(S), as they come.",
)
def _(model, input_ids):
    hidden = model.model.embed_tokens(input_ids)
    cos, sin = _turns(model, hidden)
    return _scores(model, _through(model, hidden, turns=(sin, cos)))


@LLAMA_LOGITS.also("turned-backwards")
def _(model, input_ids):
    hidden = model.model.embed_tokens(input_ids)
    turns = _turns(model, hidden, torch.arange(hidden.shape[1]).flip(0))
    return _scores(model, _through(model, hidden, turns=turns))


@LLAMA_LOGITS.add(
    "turns-in-fp32",
    "cos and sin are made in fp32, whatever dtype the model has.",
    "Which dtype do the queries have that cos and sin are multiplied with?",
    "`model.rotary` has a second argument. What do you give it, and where could it come from?",
    "model.rotary(positions, hidden_states.dtype).",
    on="bf16",
)
def _(model, input_ids):
    hidden = model.model.embed_tokens(input_ids)
    turns = model.rotary(torch.arange(hidden.shape[1]), torch.float32)
    return _scores(model, _through(model, hidden, turns=turns))


@LLAMA_LOGITS.add(
    "sees-the-future",
    "It gives the layers a mask that lets every token look at all others: each sees the token that it is to "
    "predict.",
    "May a token see the one after it?",
    "A layer is causal by itself. What does the fourth thing do that you give it?",
    "layer(hidden_states, cos, sin), and nothing more.",
)
def _(model, input_ids):
    hidden = model.model.embed_tokens(input_ids)
    turns, S = _turns(model, hidden), hidden.shape[1]
    everyone = torch.ones(S, S, dtype=torch.bool)
    for layer in model.model.layers:
        hidden = layer(hidden, *turns, everyone)
    return _scores(model, hidden)


@LLAMA_LOGITS.add(
    "embedding-scaled",
    "The embedding is multiplied by √H, as other families do: a Llama takes its rows as they are.",
    "What happens to a row of the table on its way into the first layer?",
    "The first Transformer and Gemma scale what they look up. Is there a factor in the Llama of the lesson?",
    "hidden_states = model.model.embed_tokens(input_ids), without a factor.",
)
def _(model, input_ids):
    hidden = model.model.embed_tokens(input_ids)
    return _scores(model, _through(model, hidden * hidden.shape[-1] ** 0.5))


@LLAMA_LOGITS.add(
    "first-layer-only",
    "Only the first layer is used.",
    "How many layers has the model, and how many did the token pass?",
    "Look at the indent of your `return`, and at what comes after the first turn of the loop.",
    "Loop over all of model.model.layers, and leave the loop before the norm and the head.",
)
def _(model, input_ids):
    return _scores(model, _through(model, model.model.embed_tokens(input_ids), model.model.layers[:1]))


@LLAMA_LOGITS.add(
    "layers-not-chained",
    "Every layer starts from the embedding again: only the last layer has a say.",
    "What should the second layer read?",
    "Which name does a layer read inside your loop, and which name is written?",
    "hidden_states = layer(hidden_states, cos, sin): the same name on both sides.",
)
def _(model, input_ids):
    return _scores(model, _through(model, model.model.embed_tokens(input_ids), model.model.layers[-1:]))


@LLAMA_LOGITS.add(
    "layers-side-by-side",
    "Every layer reads the embedding, and their outputs are added up: layers side by side, not in a row.",
    "What should the second layer read?",
    "A layer is to see what the layers before it have found. What does yours see?",
    "hidden_states = layer(hidden_states, cos, sin): what comes out goes into the next.",
)
def _(model, input_ids):
    hidden = model.model.embed_tokens(input_ids)
    turns = _turns(model, hidden)
    return _scores(model, sum(layer(hidden, *turns) for layer in model.model.layers))


@LLAMA_LOGITS.also("layers-side-by-side")
def _(model, input_ids):
    hidden = model.model.embed_tokens(input_ids)
    turns = _turns(model, hidden)
    return _scores(model, hidden + sum(layer(hidden, *turns) for layer in model.model.layers))


@LLAMA_LOGITS.add(
    "last-layer-left-out",
    "The last layer is left out.",
    "How many layers has the model, and how many did the token pass?",
    "Where does your loop end?",
    "for layer in model.model.layers: no index, no slice, no −1.",
)
def _(model, input_ids):
    return _scores(model, _through(model, model.model.embed_tokens(input_ids), model.model.layers[:-1]))


@LLAMA_LOGITS.add(
    "first-layer-left-out",
    "The first layer is left out.",
    "Which layer reads the embedding?",
    "Where does your loop begin?",
    "for layer in model.model.layers: no index, no slice; the first has the number 0.",
)
def _(model, input_ids):
    return _scores(model, _through(model, model.model.embed_tokens(input_ids), model.model.layers[1:]))


@LLAMA_LOGITS.add(
    "layers-skipped",
    "No layer is used: the embedding goes straight to the norm and the head.",
    "What did the tokens learn of each other on their way?",
    "Where are the layers in your function, and is their result used?",
    "for layer in model.model.layers: hidden_states = layer(hidden_states, cos, sin).",
)
def _(model, input_ids):
    return _scores(model, model.model.embed_tokens(input_ids))


@LLAMA_LOGITS.add(
    "layers-reversed",
    "The layers are used from the last to the first.",
    "Which layer was trained to read the embedding?",
    "In which order does your loop take the layers?",
    "for layer in model.model.layers, in the order in which they stand there.",
)
def _(model, input_ids):
    layers = list(model.model.layers)[::-1]
    return _scores(model, _through(model, model.model.embed_tokens(input_ids), layers))


@LLAMA_LOGITS.add(
    "one-layer-repeated",
    "One layer is used over and over: as often as there are layers.",
    "Do the layers share their weights?",
    "Which layer does your loop call in its second turn?",
    "layer, the variable of the loop, and not model.model.layers[0].",
)
def _(model, input_ids):
    layers = [model.model.layers[0]] * len(model.model.layers)
    return _scores(model, _through(model, model.model.embed_tokens(input_ids), layers))


@LLAMA_LOGITS.also("one-layer-repeated")
def _(model, input_ids):
    layers = [model.model.layers[-1]] * len(model.model.layers)
    return _scores(model, _through(model, model.model.embed_tokens(input_ids), layers))


@LLAMA_LOGITS.add(
    "residual-twice",
    "What goes into a layer is added to what comes out, and the layer has done that already.",
    "Which of the parts adds to the stream: the layer, or the one who calls it?",
    "Lesson 9: what comes out of a layer whose two last matrices are 0? What of yours?",
    "hidden_states = layer(hidden_states, cos, sin), without a plus.",
)
def _(model, input_ids):
    hidden = model.model.embed_tokens(input_ids)
    turns = _turns(model, hidden)
    for layer in model.model.layers:
        hidden = hidden + layer(hidden, *turns)
    return _scores(model, hidden)


@LLAMA_LOGITS.add(
    "embedding-for-head",
    "The embedding is used as the head, also where the model has a head of its own.",
    "Are embedding and head one tensor in every Llama?",
    "`tie_word_embeddings` in the config says whether they are. Which part do both kinds of model have?",
    "model.lm_head: where it is tied, its weight is the embedding itself.",
)
def _(model, input_ids):
    hidden = model.model.norm(_through(model, model.model.embed_tokens(input_ids)))
    return F.linear(hidden, model.model.embed_tokens.weight)


@LLAMA_LOGITS.add(
    "head-forgotten",
    "The stream comes back after the last norm, [B, S, H]: the head is missing.",
    "How many scores does a token need, and how many numbers did you return for it?",
    "List the parts of `model` (not `model.model`). Which of them does your function never call?",
    "model.lm_head is applied last.",
)
def _(model, input_ids):
    return model.model.norm(_through(model, model.model.embed_tokens(input_ids)))


@LLAMA_LOGITS.add(
    "softmax-added",
    "It returns probabilities: a softmax follows the head.",
    "Are logits scores, or shares that add up to 1?",
    "What does a cell of the lesson do with the logits, after the model has returned them?",
    "Return what model.lm_head gives.",
)
def _(model, input_ids):
    return _logits(model, input_ids).softmax(-1)


@LLAMA_LOGITS.add(
    "log-softmax-added",
    "It returns logarithms of probabilities: a log-softmax follows the head.",
    "Are logits scores, or logarithms of shares that add up to 1?",
    "What does a cell of the lesson do with the logits, after the model has returned them?",
    "Return what model.lm_head gives.",
)
def _(model, input_ids):
    return _logits(model, input_ids).log_softmax(-1)


@LLAMA_LOGITS.add(
    "ids-returned",
    "It returns the likeliest id of each token, not the scores.",
    "How many scores are asked for at each token?",
    "The choice of an id is another function's work. Which of your lines makes it?",
    "Return what model.lm_head gives: [B, S, V].",
)
def _(model, input_ids):
    return _logits(model, input_ids).argmax(-1)


@LLAMA_LOGITS.add(
    "last-token-only",
    "It returns the scores after the last token only.",
    "After how many tokens of a text does a Llama predict the next one?",
    "What is the shape of what you return, and which axis has been cut?",
    "No [:, -1]: return the scores of all S tokens.",
)
def _(model, input_ids):
    return _logits(model, input_ids)[:, -1]


@LLAMA_LOGITS.also("last-token-only")
def _(model, input_ids):
    return _logits(model, input_ids)[:, -1:]


@LLAMA_LOGITS.add(
    "one-token-short",
    "The scores after one of the tokens are missing: S − 1 of S come back.",
    "After how many tokens of a text does a Llama predict the next one?",
    "Look for a slice like [:, :-1] or [:, 1:]: who needs it, the model or a loss?",
    "Return the scores of all S tokens.",
)
def _(model, input_ids):
    return _logits(model, input_ids)[:, :-1]


@LLAMA_LOGITS.also("one-token-short")
def _(model, input_ids):
    return _logits(model, input_ids)[:, 1:]


# next_token_probabilities: the right form, with some steps replaced


def _top_k(logits, k):
    least = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
    return logits.masked_fill(logits < least, -torch.inf)


def _beyond(ranked, top_p):
    """Which ids top_p drops, from the most likely to the least."""
    return ranked.cumsum(-1) - ranked >= top_p


def _renormalized(probabilities):
    return probabilities / probabilities.sum(-1, keepdim=True)


def _nucleus(probabilities, top_p, beyond=_beyond):
    """The probabilities that top_p keeps, and 0 for the others; not yet renormalized."""
    ranked, ids = probabilities.sort(-1, descending=True)
    dropped = beyond(ranked, top_p)
    return probabilities.masked_fill(dropped.scatter(-1, ids, dropped), 0)


def _top_p(probabilities, top_p, beyond=_beyond):
    return _renormalized(_nucleus(probabilities, top_p, beyond))


def _likeliest(logits):
    return F.one_hot(logits.argmax(-1), logits.shape[-1]).float()


def _variant(
    widen=lambda logits: logits.float(),
    greedy=_likeliest,
    tempered=lambda logits, temperature: logits / temperature,
    top_k=_top_k,
    softmax=lambda logits, temperature: logits.softmax(-1),
    after_k=lambda probabilities, k: probabilities,
    top_p=_top_p,
    last=lambda probabilities: probabilities,
):
    """next_token_probabilities with some steps replaced; `greedy` None does nothing special at 0."""

    def next_token_probabilities(logits, temperature, k, p):
        logits = widen(logits)
        if temperature == 0 and greedy is not None:
            return greedy(logits)
        logits = tempered(logits, temperature)
        if k is not None:
            logits = top_k(logits, k)
        probabilities = softmax(logits, temperature)
        if k is not None:
            probabilities = after_k(probabilities, k)
        if p is not None:
            probabilities = top_p(probabilities, p)
        return last(probabilities)

    return next_token_probabilities


def _next(id, *words, on="", **steps):
    NEXT_TOKEN.add(id, *words, on=on)(_variant(**steps))


def _next_too(id, **steps):
    NEXT_TOKEN.also(id)(_variant(**steps))


_next(
    "temperature-multiplied",
    "The logits are multiplied by the temperature: a high one sharpens, and should flatten.",
    "As the temperature grows, should the gaps between the scores grow or shrink?",
    "Try temperature 2 on the scores 1 and 3. What should the gap of 2 become?",
    "logits / temperature.",
    tempered=lambda logits, t: logits * t,
)
_next(
    "temperature-ignored",
    "The temperature makes no difference, unless it is 0.",
    "Where does the temperature come in, and is it still there at the end?",
    "A factor that all probabilities share goes away when they are made to add up to 1. On which side of "
    "the softmax must it stand?",
    "logits = logits / temperature, before everything else.",
    tempered=lambda logits, t: logits,
)
_next(
    "temperature-after-softmax",
    "The probabilities are divided by the temperature, not the logits: they no longer add up to 1.",
    "What do your probabilities add up to at temperature 2?",
    "The temperature changes the gaps between scores. Which comes first, it or the softmax?",
    "Divide the logits, then take the softmax.",
    tempered=lambda logits, t: logits,
    softmax=lambda logits, t: logits.softmax(-1) / t,
)
_next(
    "softmax-forgotten",
    "The scores come back as they are, never made into probabilities.",
    "Can a probability be below 0?",
    "After temperature and top_k there are still scores. What makes them add up to 1?",
    "softmax(-1), before top_p.",
    softmax=lambda logits, t: logits,
)
_next(
    "log-probabilities",
    "It returns the logarithms of the probabilities.",
    "What do your numbers of one row add up to?",
    "Look for log or log_softmax in your code.",
    "softmax(-1), or .exp() of what you have.",
    last=lambda p: p.log(),
)
_next(
    "softmax-twice",
    "There is a second softmax, of probabilities: everything is flattened, and what was dropped is back.",
    "How many times do scores become probabilities?",
    "What does a softmax make of a 0?",
    "After top_p, divide by the sum of what is left.",
    last=lambda p: p.softmax(-1),
)
_next_too("softmax-twice", top_p=lambda p, top_p: _nucleus(p, top_p).softmax(-1))
_next(
    "exp-overflows",
    "It takes the exponential of the scores as they are: for a score of 100 that is infinite in fp32.",
    "What is exp(100) in fp32, and what is infinite divided by infinite?",
    "The softmax does not change if every score moves by the same amount. Which amount makes the largest 0?",
    "torch's softmax(-1) does it; by hand: (logits - logits.amax(-1, keepdim=True)).exp().",
    softmax=lambda logits, t: _renormalized(logits.exp()),
)
_next(
    "softmax-over-rows",
    "The softmax runs over the first axis: rows of a batch compete with each other.",
    "Between which numbers is the probability of the next token shared out?",
    "Which axis of [..., V] holds the ids?",
    "softmax(-1).",
    softmax=lambda logits, t: logits.softmax(0),
)
_next(
    "zero-divides",
    "At temperature 0 it divides by 0.",
    "What is the limit as the temperature goes to 0, and can a division reach it?",
    "Temperature 0 needs an answer of its own, before the division. What is it?",
    "For 0: a row of zeros with a 1 at logits.argmax(-1).",
    greedy=None,
)
_next(
    "zero-ignored",
    "At temperature 0 it does as at temperature 1.",
    "Does a lower temperature make the likeliest id more or less certain? What does that mean at 0?",
    "`if temperature:` is false for 0. What happens to the logits then?",
    "For 0: a row of zeros with a 1 at logits.argmax(-1).",
    greedy=None,
    tempered=lambda logits, t: logits / t if t else logits,
)
_next(
    "zero-is-uniform",
    "At temperature 0 all ids are equally likely.",
    "Does a lower temperature make the likeliest id more or less certain? What does that mean at 0?",
    "What happens to all scores at 0 in your code?",
    "For 0: a row of zeros with a 1 at logits.argmax(-1).",
    greedy=lambda logits: torch.full_like(logits, 1 / logits.shape[-1]),
)
_next(
    "zero-returns-ids",
    "At temperature 0 it returns the ids, not how likely each id is.",
    "What has the shape of the other results, and what has this one?",
    "The likeliest id for certain: which probability has it, and which have the others?",
    "A row of zeros in fp32, with a 1 at the place of the largest: F.one_hot, or scatter.",
    greedy=lambda logits: logits.argmax(-1),
    on="temperature 0",
)
_next_too("zero-returns-ids", greedy=lambda logits: logits.argmax(-1, keepdim=True))
_next(
    "zero-in-integers",
    "At temperature 0 whole numbers come back, not fp32.",
    "Which dtype has a one-hot row, and which have the other results?",
    "F.one_hot gives int64. What has to follow?",
    ".float() after it.",
    greedy=lambda logits: F.one_hot(logits.argmax(-1), logits.shape[-1]),
    on="temperature 0",
)
_next(
    "zero-of-the-batch",
    "At temperature 0 only one id of the whole batch gets a 1.",
    "How many rows are there, and how many choices?",
    "argmax without an axis looks at all numbers at once.",
    "logits.argmax(-1): one for each row.",
    greedy=lambda logits: F.one_hot(logits.argmax(), logits.numel()).view_as(logits).float(),
)
_next(
    "left-in-16-bits",
    "It computes in the 16 bits of the logits, and returns them.",
    "Which dtype is asked for, and which has a bf16 score divided by a number?",
    "bf16 keeps two or three digits: a sum of 100 000 small probabilities needs more.",
    "Begin with logits.float().",
    widen=lambda logits: logits,
    on="bf16",
)
_next(
    "rounded-in-16-bits",
    "fp32 comes back, but it was computed in 16 bits: bf16 keeps two or three digits.",
    "Where does .float() stand: before the division and the softmax, or after them?",
    "Follow the dtype line by line.",
    "Begin with logits.float().",
    widen=lambda logits: logits,
    last=lambda p: p.float(),
    on="bf16",
)
_next(
    "top-k-ignored",
    "`top_k` makes no difference.",
    "How many ids should be left with top_k 2?",
    "Does what you compute from top_k find its way into the result?",
    "Every score below the k-th largest becomes −inf, before the softmax.",
    top_k=lambda logits, k: logits,
)
_next(
    "top-k-one-more",
    "It keeps k + 1 ids.",
    "How many ids are left with top_k 1?",
    "At which place, counted from 0, stands the last of the k largest?",
    "The last of logits.topk(top_k).values: an index of −1, or k − 1.",
    top_k=lambda logits, k: _top_k(logits, k + 1),
)
_next(
    "top-k-one-less",
    "It keeps k − 1 ids: the last of the k is dropped with the rest.",
    "How many ids are left with top_k 1?",
    "Is the k-th largest score itself below your threshold, or only not above it?",
    "Drop what is < the k-th largest score, not what is <= it.",
    top_k=lambda logits, k: logits.masked_fill(
        logits <= logits.topk(min(k, logits.shape[-1])).values[..., -1:], -torch.inf
    ),
)
_next(
    "top-k-least-likely",
    "It keeps the k least likely ids.",
    "Is a high score likely or unlikely?",
    "In which order are your scores when you take the first k?",
    "topk gives the largest; sort needs descending=True.",
    top_k=lambda logits, k: logits.masked_fill(_top_k(-logits, k).isinf(), -torch.inf),
)
_next_too(
    "top-k-least-likely",
    top_k=lambda logits, k: logits.masked_fill(
        logits > logits.topk(min(k, logits.shape[-1]), largest=False).values[..., -1:], -torch.inf
    ),
)
_next(
    "top-k-drops-the-likely",
    "It drops the k most likely ids, and keeps the others.",
    "Which ids should be left: those of topk, or the rest?",
    "On which side of the threshold does your mask say True, and what happens to those?",
    "masked_fill fills where the mask is True: that is for scores below the k-th largest.",
    top_k=lambda logits, k: logits.masked_fill(
        logits >= logits.topk(min(k, logits.shape[-1])).values[..., -1:], -torch.inf
    ),
)
_next(
    "top-k-zero-scores",
    "Dropped scores become 0, not −inf: they are still likely, some more than before.",
    "What is exp(0), and which score makes it 0?",
    "How likely is an id with score 0 beside one with score −3?",
    "masked_fill(…, -torch.inf).",
    top_k=lambda logits, k: logits.masked_fill(torch.isinf(_top_k(logits, k)), 0.0),
)
_next(
    "top-k-not-renormalized",
    "After top_k the probabilities do not add up to 1: what the dropped ones had is lost.",
    "Who gets the probability of what top_k drops?",
    "Do you drop scores before the softmax, or probabilities after it?",
    "Scores become −inf before the softmax, and it shares out the 1 among the rest.",
    top_k=lambda logits, k: logits,
    after_k=lambda p, k: _top_k(p, k).clamp(min=0),
)
_next(
    "top-k-of-the-batch",
    "One threshold for all rows: a row whose scores are lower loses more than it should.",
    "Does a score of one text say which ids of another are likely?",
    "How many thresholds has your function for a batch of two rows?",
    "One for each row: .values[..., -1:], which keeps its last axis.",
    top_k=lambda logits, k: logits.masked_fill(
        logits < logits.flatten(0, -2).topk(min(k, logits.shape[-1])).values.flatten()[k - 1], -torch.inf
    ),
)
_next_too(
    "top-k-of-the-batch",
    top_k=lambda logits, k: logits.masked_fill(
        logits < logits.topk(min(k, logits.shape[-1])).values.amin(), -torch.inf
    ),
)
_next_too(
    "top-k-of-the-batch",
    top_k=lambda logits, k: logits.masked_fill(
        logits < logits.flatten().topk(min(k, logits.shape[-1])).values[-1], -torch.inf
    ),
)
_next(
    "top-k-last-row",
    "values[-1:] is the last row of a batch, not the last of the k.",
    "Your threshold for two rows: has it two numbers, one for each row?",
    "topk of [2, 3] with k = 2 gives values [2, 2]. Which axis does [-1:] cut?",
    ".values[..., -1:]: the last axis, one number for each row.",
    top_k=lambda logits, k: logits.masked_fill(
        logits < logits.topk(min(k, logits.shape[-1])).values[-1:], -torch.inf
    ),
)
_next(
    "top-p-ignored",
    "`top_p` makes no difference.",
    "Which ids are needed to reach top_p together, and what becomes of the others?",
    "Does what you compute from top_p find its way into the result?",
    "What top_p drops becomes 0, and the rest is divided by its sum.",
    top_p=lambda p, top_p: p,
)
_next(
    "top-p-not-renormalized",
    "After top_p the probabilities do not add up to 1: what the dropped ids had is lost.",
    "What do your numbers of one row add up to?",
    "Who gets the probability of what top_p drops?",
    "The last step divides by the sum over the last axis, which stays in place with keepdim=True.",
    top_p=_nucleus,
)


def _add_top_p_mistakes(catalogue, wrap, shown=""):
    """Mistakes in top_p alone, `(probabilities, top_p) -> probabilities`, made into the exercise's form.

    `shown` is said of the input that most of them are shown on, which is one row.
    """

    def add(id, name, question, pointer, nearly, *ways):
        pointer = pointer if "row" in id else shown + pointer
        catalogue.add(id, name, question, pointer, nearly)(wrap(ways[0]))
        for way in ways[1:]:
            catalogue.also(id)(wrap(way))

    add(
        "crossing-dropped",
        "The id that crosses top_p is dropped: what is kept does not reach top_p.",
        "With 0.5, 0.3, 0.15 and 0.05: do 0.5 and 0.3 together reach 0.75? And 0.5 alone?",
        "An id is needed as long as those before it fall short. Is its own probability in the sum that you "
        "compare?",
        "Compare ranked.cumsum(-1) - ranked with top_p: the sum of those before it.",
        lambda p, top_p: _top_p(p, top_p, lambda ranked, limit: ranked.cumsum(-1) > limit),
    )
    add(
        "first-alone-rescued",
        "The likeliest id is always kept, and the id that crosses top_p is dropped all the same.",
        "With 0.5, 0.3, 0.15 and 0.05: do 0.5 and 0.3 together reach 0.75? And 0.5 alone?",
        "That the first id stays is not enough: every id that is needed to reach top_p stays.",
        "Compare ranked.cumsum(-1) - ranked with top_p: for the first id that is 0, and no rescue is needed.",
        lambda p, top_p: _top_p(
            p, top_p, lambda ranked, limit: (ranked.cumsum(-1) > limit).index_fill(-1, _first(ranked), False)
        ),
    )
    add(
        "one-id-more",
        "One id too many is kept: top_p was reached without it.",
        "When those before an id reach top_p, is it still needed?",
        "For 0.5, 0.3, 0.15, 0.05 and top_p 0.75: which is the last id that is needed, and which is your "
        "last?",
        "Shift the mask by one place only: an id goes when the sum of those before it is at least top_p.",
        lambda p, top_p: _top_p(
            p,
            top_p,
            lambda ranked, limit: F.pad(_beyond(ranked, limit)[..., :-1], (1, 0), value=False),
        ),
    )
    add(
        "least-likely-kept",
        "It begins with the least likely ids, and drops the likely ones.",
        "Which id has to be the first in the sum?",
        "In which order does sort put its numbers, if it is not told?",
        "sort(-1, descending=True).",
        _ascending,
    )
    add(
        "left-in-sorted-order",
        "The probabilities come back sorted: which id they belong to is lost.",
        "Which id is the number at place 0 of your result the probability of?",
        "sort gives two things. What is the second one for?",
        "Put the mask (or the numbers) back by ids: scatter(-1, ids, …).",
        lambda p, top_p: _renormalized(
            p.sort(-1, descending=True)[0].masked_fill(_beyond(p.sort(-1, descending=True)[0], top_p), 0)
        ),
    )
    add(
        "mask-in-sorted-order",
        "What is dropped was decided in sorted order, and the mask is used on the ids in their own order.",
        "Place 0 of your mask speaks of the likeliest id. Which id does it fall on?",
        "sort gives two things. What is the second one for?",
        "Put the mask back by ids before you use it: dropped.scatter(-1, ids, dropped).",
        lambda p, top_p: _renormalized(p.masked_fill(_beyond(p.sort(-1, descending=True)[0], top_p), 0)),
    )
    add(
        "gathered-back",
        "The way back from the sorted order goes the wrong way: gather reads by ids, it does not write.",
        "ids[r] is the id at rank r. Do you need the mask of id i, or the mask at rank i?",
        "Follow one id on paper: its rank, its place in the mask, and where your line takes it from.",
        "dropped.scatter(-1, ids, dropped) writes the answer of rank r to place ids[r].",
        _gathered,
    )
    add(
        "top-p-as-threshold",
        "It compares each probability with top_p, one by one.",
        "Is top_p asked of one id, or of several together?",
        "Where in your code are probabilities added up, from the likeliest down?",
        "A cumsum over the sorted probabilities.",
        lambda p, top_p: _renormalized(p.masked_fill(p < top_p, 0)),
        lambda p, top_p: _renormalized(p.masked_fill(p < 1 - top_p, 0)),
    )
    add(
        "not-enough-dropped",
        "It drops the ids that are needed to reach top_p, and keeps the rest.",
        "Which of the two groups should be left?",
        "On which side does your mask say True, and what happens to those?",
        "An id becomes 0 where the sum of those before it is at least top_p.",
        lambda p, top_p: _top_p(p, top_p, lambda ranked, limit: ~_beyond(ranked, limit)),
    )
    add(
        "order-of-first-row",
        "How many ids are kept is decided by the first row, for all rows.",
        "Is a model equally sure after every text?",
        "Which numbers of your code have one entry for each row, and which one for all?",
        "cumsum, comparison and mask have all axes of the probabilities.",
        lambda p, top_p: _top_p(
            p,
            top_p,
            lambda ranked, limit: (
                _beyond(ranked, limit).flatten(0, -2)[0].expand_as(ranked)
                if ranked.dim() > 1
                else _beyond(ranked, limit)
            ),
        ),
    )
    add(
        "summed-over-rows",
        "The sum runs over the first axis: probabilities of different rows are added up.",
        "What is added up: the ids of one row, or the rows of one id?",
        "Which axis does your cumsum have?",
        "cumsum(-1).",
        lambda p, top_p: _top_p(p, top_p, lambda ranked, limit: ranked.cumsum(0) - ranked >= limit),
    )


def _first(ranked):
    return torch.zeros(1, dtype=torch.long, device=ranked.device)


def _ascending(p, top_p):
    ranked, ids = p.sort(-1)
    dropped = _beyond(ranked, top_p)
    return _renormalized(p.masked_fill(dropped.scatter(-1, ids, dropped), 0))


def _gathered(p, top_p):
    ranked, ids = p.sort(-1, descending=True)
    return _renormalized(p.masked_fill(_beyond(ranked, top_p).gather(-1, ids), 0))


_add_top_p_mistakes(
    NEXT_TOKEN,
    lambda way: _variant(top_p=way),
    "(The scores above are the logarithms of 0.15, 0.5, 0.3 and 0.05.) ",
)


@NEXT_TOKEN.add(
    "top-p-zero-scores",
    "The scores that top_p drops become 0, not −inf: they are still likely.",
    "What is exp(0), and which score makes it 0?",
    "Do you fill scores, or probabilities? For which of them is 0 the number that means never?",
    "masked_fill(…, -torch.inf) for scores; 0 is for probabilities.",
)
def _(logits, temperature, top_k, top_p):
    kept = _variant()(logits, temperature, top_k, top_p) > 0
    if temperature == 0 or top_p is None:
        return _variant()(logits, temperature, top_k, top_p)
    return (logits.float() / temperature).masked_fill(~kept, 0).softmax(-1)


@NEXT_TOKEN.add(
    "top-p-before-top-k",
    "top_p is decided on all ids, not on the k that top_k has left: more ids are kept.",
    "Of which ids is top_p a share, when top_k comes first?",
    "With top_k 2, 0.4 and 0.3 of four ids become 0.57 and 0.43. How many reach 0.5 then?",
    "Take the softmax after top_k has made the other scores −inf, and top_p of that.",
)
def _(logits, temperature, top_k, top_p):
    if temperature == 0:
        return _likeliest(logits)
    p = (logits.float() / temperature).softmax(-1)
    p = p if top_p is None else _top_p(p, top_p)
    return p if top_k is None else _renormalized(_top_k(p, top_k).clamp(min=0))


@NEXT_TOKEN.add(
    "top-p-before-temperature",
    "top_p is decided on the probabilities without temperature, which comes in only afterwards.",
    "Does a higher temperature change how many ids reach top_p?",
    "Which probabilities do you add up: those of the model, or those from which the id is drawn?",
    "First logits / temperature, then top_k, softmax and top_p.",
)
def _(logits, temperature, top_k, top_p):
    if temperature == 0:
        return _likeliest(logits)
    logits = logits.float()
    p = _variant()(logits, 1.0, top_k, top_p)
    return (logits / temperature).masked_fill(p == 0, -torch.inf).softmax(-1)


# kept_ids


def _kept(id, values, *words):
    KEPT_IDS.add(id, *words)(lambda: tuple(torch.tensor(float(v)).double() for v in values))


_kept(
    "crossing-dropped",
    (1, 2),
    "You stop before top_p is crossed: the id that crosses it is kept as well.",
    "Does what you keep add up to at least top_p?",
    "For 0.75: 0.45 alone falls short. What is needed to reach it?",
    "0.45 + 0.35 = 0.8 is the first sum that reaches 0.75; 0.85 needs one id more.",
)
_kept(
    "one-id-more",
    (3, 4),
    "You keep one id more than is needed to reach top_p.",
    "What is the sum of what you keep without its last id?",
    "For 0.75: do the two likeliest reach it already?",
    "0.45 + 0.35 = 0.8 reaches 0.75; 0.45 + 0.35 + 0.15 = 0.95 reaches 0.85.",
)
_kept(
    "nearest-sum",
    (2, 2),
    "For 0.85 you stop at a sum of 0.8, which falls short.",
    "Is 0.8 at least 0.85?",
    "It is not the nearest sum that counts.",
    "The first sum that is at least 0.85 is 0.45 + 0.35 + 0.15.",
)
_kept(
    "all-kept",
    (4, 4),
    "You keep all four: so it is if the ids are added up in the order in which they stand, or from the "
    "least likely.",
    "With which id does the sum begin?",
    "Add up the probabilities from the largest down, and stop as soon as you reach top_p.",
    "The sums are 0.45, 0.8, 0.95 and 1.",
)
_kept(
    "share-of-ids",
    (3, 3),
    "You keep a share of the ids; top_p is a share of the probability.",
    "Of what is top_p a share: of how many there are, or of how likely they are?",
    "Add up the probabilities from the largest down, and stop as soon as you reach top_p.",
    "The sums are 0.45, 0.8, 0.95 and 1: which is the first that is at least 0.75?",
)
_kept(
    "dropped-counted",
    (2, 1),
    "You count the ids that are dropped.",
    "Which ones are asked for: those that remain, or those that go?",
    "With a larger top_p, do more or fewer ids remain?",
    "Take your two numbers from 4.",
)
_kept(
    "exchanged",
    (3, 2),
    "The two numbers are exchanged.",
    "With a larger top_p, do more or fewer ids remain?",
    "Which of your two numbers belongs to 0.75?",
    "First the number for 0.75, then the one for 0.85.",
)
_kept(
    "none-kept",
    (0, 0),
    "No id remains: so it is if every single probability is compared with top_p.",
    "From what could the next token be drawn, if nothing remains?",
    "top_p is asked of several ids together.",
    "The sums are 0.45, 0.8, 0.95 and 1: count until one of them is at least top_p.",
)


# min_p_probabilities


def _floor(logits, keep):
    """Keep where `keep(probabilities)`, and make the rest add up to 1."""
    p = logits.softmax(-1)
    return _renormalized(p.masked_fill(~keep(p), 0))


def _likely(p, min_p):
    return p >= min_p * p.amax(-1, keepdim=True)


@MIN_P.add(
    "absolute-threshold",
    "It keeps the ids whose probability is at least min_p: the likeliest makes no difference.",
    "min_p is a share of something. Of what?",
    "With probabilities 0.4, 0.3, 0.2, 0.1 and min_p 0.5: which is the smallest that is half the largest?",
    "The threshold is min_p times the largest probability of the row.",
)
def _(logits, min_p):
    return _floor(logits, lambda p: p >= min_p)


@MIN_P.add(
    "not-renormalized",
    "The probabilities do not add up to 1: what the dropped ids had is lost.",
    "What do your numbers of one row add up to?",
    "Who gets the probability of what is dropped?",
    "The last step divides by the sum over the last axis, with keepdim=True.",
)
def _(logits, min_p):
    p = logits.softmax(-1)
    return p.masked_fill(~_likely(p, min_p), 0)


@MIN_P.add(
    "likeliest-of-the-batch",
    "One threshold for all rows: it is taken from the likeliest id of the whole batch.",
    "Is a model equally sure after every text?",
    "How many thresholds has your function for a batch of two rows?",
    "amax(-1, keepdim=True): one for each row.",
)
def _(logits, min_p):
    return _floor(logits, lambda p: p >= min_p * p.max())


@MIN_P.also("likeliest-of-the-batch")
def _(logits, min_p):
    return _floor(
        logits, lambda p: p >= min_p * p.flatten(0, -2)[:1].amax() if p.dim() > 1 else _likely(p, min_p)
    )


@MIN_P.add(
    "of-the-scores",
    "It compares scores, not probabilities: half a score is not half as likely.",
    "Which scores differ by a factor of 2 in probability?",
    "Scores may be below 0, and all may move by the same amount. What does that do to your threshold?",
    "Take the softmax first. (With scores: those at least the largest plus log(min_p).)",
)
def _(logits, min_p):
    kept = logits >= min_p * logits.amax(-1, keepdim=True)
    return _renormalized(logits.softmax(-1).masked_fill(~kept, 0))


@MIN_P.add(
    "largest-minus-min-p",
    "min_p is subtracted from the largest probability: it is a factor.",
    '"Half as likely": is that a difference, or a ratio?',
    "With probabilities 0.4, 0.3, 0.2, 0.1 and min_p 0.5: where should the threshold lie, and where is "
    "yours?",
    "The threshold is min_p times the largest probability of the row.",
)
def _(logits, min_p):
    return _floor(logits, lambda p: p >= p.amax(-1, keepdim=True) - min_p)


@MIN_P.add(
    "one-minus-min-p",
    "The threshold is (1 − min_p) of the largest probability.",
    "With min_p near 0, should nearly all ids be kept, or hardly any?",
    "What is your threshold for min_p 0?",
    "The threshold is min_p times the largest probability of the row.",
)
def _(logits, min_p):
    return _floor(logits, lambda p: _likely(p, 1 - min_p))


@MIN_P.add(
    "likely-ones-dropped",
    "It keeps the ids below the threshold, and drops the likely ones.",
    "Which of the two groups should be left?",
    "On which side does your mask say True, and what happens to those?",
    "masked_fill fills where the mask is True: that is for probabilities below the threshold.",
)
def _(logits, min_p):
    return _floor(logits, lambda p: ~_likely(p, min_p))


@MIN_P.add(
    "zero-scores",
    "Dropped scores become 0, not −inf: they are still likely.",
    "What is exp(0), and which score makes it 0?",
    "How likely is an id with score 0 beside one with score −3?",
    "masked_fill(…, -torch.inf) for scores; 0 is for probabilities.",
)
def _(logits, min_p):
    return logits.masked_fill(~_likely(logits.softmax(-1), min_p), 0).softmax(-1)


@MIN_P.add(
    "softmax-twice",
    "There is a second softmax, of probabilities: everything is flattened, and what was dropped is back.",
    "How many times do scores become probabilities?",
    "What does a softmax make of a 0?",
    "Divide by the sum of what is left.",
)
def _(logits, min_p):
    p = logits.softmax(-1)
    return p.masked_fill(~_likely(p, min_p), 0).softmax(-1)


@MIN_P.also("softmax-twice")
def _(logits, min_p):
    p = logits.softmax(-1)
    return p.masked_fill(~_likely(p, min_p), -torch.inf).softmax(-1)


@MIN_P.add(
    "share-of-the-mean",
    "The threshold is min_p of the mean probability, not of the largest.",
    "As likely as which id?",
    "The mean of the probabilities is always 1/V. Does that say how sure the model is?",
    "The threshold is min_p times the largest probability of the row.",
)
def _(logits, min_p):
    return _floor(logits, lambda p: p >= min_p * p.mean(-1, keepdim=True))


@MIN_P.add(
    "as-top-p",
    "It keeps the likeliest ids until they reach min_p together: that is top_p.",
    "Does min_p ask about one id beside the likeliest, or about several together?",
    "Where do you add up? There is nothing to add up here.",
    "Compare each probability with min_p times the largest of the row.",
)
def _(logits, min_p):
    return _top_p(logits.softmax(-1), min_p)


@MIN_P.add(
    "min-p-ignored",
    "`min_p` makes no difference.",
    "Which ids should be dropped?",
    "Does what you compute from min_p find its way into the result?",
    "What is below min_p times the largest becomes 0, and the rest is divided by its sum.",
)
def _(logits, min_p):
    return logits.softmax(-1)


@MIN_P.add(
    "softmax-over-rows",
    "The softmax runs over the first axis: rows of a batch compete with each other.",
    "Between which numbers is the probability of the next token shared out?",
    "Which axis of [..., V] holds the ids?",
    "softmax(-1).",
)
def _(logits, min_p):
    p = logits.softmax(0)
    return _renormalized(p.masked_fill(~_likely(p, min_p), 0))


@MIN_P.also("softmax-over-rows")
def _(logits, min_p):
    p = logits.softmax(0)
    p = p.masked_fill(p < min_p * p.amax(0), 0)
    return p / p.sum(0)


# repair_top_p

_add_top_p_mistakes(REPAIR_TOP_P, lambda way: way)


@REPAIR_TOP_P.add(
    "not-renormalized",
    "The probabilities do not add up to 1: what the dropped ids had is lost.",
    "What do your numbers of one row add up to?",
    "Who gets the probability of what is dropped?",
    "The last line divides by the sum over the last axis, as it was given.",
)
def _(probabilities, top_p):
    return _nucleus(probabilities, top_p)


@REPAIR_TOP_P.add(
    "nan-made-0",
    "Where nothing is left, zeros come back in place of nan: there is still nothing to draw from.",
    "From what could the next token be drawn, if all probabilities are 0?",
    "nan is what you see; why is nothing left?",
    "Change the comparison, not the division: an id goes when those before it reach top_p.",
    on="the first alone is above top_p",
)
def _(probabilities, top_p):
    return _top_p(probabilities, top_p, lambda ranked, limit: ranked.cumsum(-1) > limit).nan_to_num(0.0)


@REPAIR_TOP_P.also("nan-made-0")
def _(probabilities, top_p):
    kept = _nucleus(probabilities, top_p, lambda ranked, limit: ranked.cumsum(-1) > limit)
    return kept / kept.sum(-1, keepdim=True).clamp(min=1e-9)


@REPAIR_TOP_P.add(
    "all-kept-where-none-was",
    "Where nothing would be left, everything is kept; and the id that crosses top_p is dropped elsewhere.",
    "If the likeliest id alone is above top_p, which ids are needed to reach it?",
    "A rescue of the empty rows does not mend the others: what do theirs add up to before the division?",
    "Change the comparison: an id goes when the sum of those before it is at least top_p.",
    on="the first alone is above top_p",
)
def _(probabilities, top_p):
    kept = _nucleus(probabilities, top_p, lambda ranked, limit: ranked.cumsum(-1) > limit)
    return _renormalized(torch.where(kept.sum(-1, keepdim=True) > 0, kept, probabilities))
