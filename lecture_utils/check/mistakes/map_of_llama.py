"""Mistakes in the exercises of lesson 0."""

import torch
import torch.nn.functional as F

from ..mistake import Catalogue

EMBED = Catalogue()
PARAMETER_COUNT = Catalogue()
LOGITS_SHAPE = Catalogue()
SHIFTED_TARGETS = Catalogue()
APPEND_NEXT = Catalogue()


@EMBED.add(
    "columns",
    "It takes columns of the table, not rows.",
    "The table is [V, H]. Which of its axes counts the words?",
    "How long is a row of the table, how long a column? Which of the two lengths should a token have?",
    "The ids index the first axis: weight[input_ids].",
)
def _(input_ids, weight):
    return weight[:, input_ids]


@EMBED.also("columns")
def _(input_ids, weight):
    return weight.T[input_ids]


@EMBED.add(
    "counted-from-1",
    "It counts the rows from 1: every token gets the row above its own.",
    "Which row belongs to the id 0?",
    "Look for a `- 1` in your lines. Python counts rows as the ids do.",
    "weight[input_ids], with the ids as they are.",
)
def _(input_ids, weight):
    return weight[input_ids - 1]


@EMBED.add(
    "scaled-by-root-h",
    "Every feature is multiplied by √H. Some families do that; Llama does not.",
    "What comes out for the id 0: the row of the table, or a multiple of it?",
    "The 2017 Transformer multiplies its embeddings by a root. Where would it stand in the printed tree?",
    "weight[input_ids] is all: no factor.",
)
def _(input_ids, weight):
    return weight[input_ids] * weight.shape[1] ** 0.5


@EMBED.add(
    "batch-flattened",
    "The texts are strung together: one list of tokens comes back, not one for each text.",
    "How many axes has `input_ids`, and how many has your result?",
    "The axis of features is added behind the two that are there. Which line takes one away?",
    "Index with input_ids as they are, without flatten or view.",
)
def _(input_ids, weight):
    return weight[input_ids.flatten()]


@EMBED.add(
    "first-text-only",
    "Only the first text is looked up.",
    "What becomes of the second text?",
    "Look for an index in your lines that picks one text of the batch.",
    "Index with all of input_ids at once.",
)
def _(input_ids, weight):
    return weight[input_ids[0]]


@EMBED.also("first-text-only")
def _(input_ids, weight):
    return weight[input_ids[0]][None]


@EMBED.add(
    "tokens-averaged",
    "It averages or adds up the tokens: one list of features for a whole text.",
    "If you exchange two words of a text, does anything change in your result?",
    "The sequence axis has to be there at the end. Which line takes it away?",
    "weight[input_ids] alone: every token keeps its own row.",
)
def _(input_ids, weight):
    return weight[input_ids].mean(1)


@EMBED.also("tokens-averaged")
def _(input_ids, weight):
    return weight[input_ids].sum(1)


@EMBED.also("tokens-averaged")
def _(input_ids, weight):
    return weight[input_ids].mean(1, keepdim=True)


@EMBED.add(
    "features-first",
    "The features stand before the tokens: [B, H, S].",
    "Which axis should be the last one?",
    "Print the shape, and compare it with [B, S, H]. Which line exchanges two axes?",
    "Indexing gives [B, S, H] by itself: leave the transpose out.",
)
def _(input_ids, weight):
    return weight[input_ids].transpose(1, 2)


@EMBED.add(
    "tokens-before-texts",
    "Texts and tokens are exchanged: [S, B, H].",
    "Which axis counts the texts?",
    "Print the shape for two texts of three tokens. Which line turns the ids round?",
    "Index with input_ids, not with its transpose.",
)
def _(input_ids, weight):
    return weight[input_ids.T]


@EMBED.add(
    "position-for-id",
    "It looks up the position of a token, not its id: every text gets the same rows.",
    "Where do the numbers inside `input_ids` come in?",
    "You use how many ids there are. What is written in them?",
    "The index is input_ids itself, not a range of its length.",
)
def _(input_ids, weight):
    places = torch.arange(input_ids.shape[1]).expand(input_ids.shape)
    return weight[places]


@EMBED.also("position-for-id")
def _(input_ids, weight):
    return weight[: input_ids.shape[1]].expand(len(input_ids), -1, -1)


@EMBED.add(
    "id-as-a-size",
    "It multiplies by the id, as if a larger id meant more of something.",
    "Is the word with the id 4 twice the word with the id 2?",
    "An id is a name. What is done with a name in a table?",
    "Use the id as the number of a row: weight[input_ids].",
)
def _(input_ids, weight):
    return input_ids[..., None].to(weight.dtype) * weight[0]


@EMBED.also("id-as-a-size")
def _(input_ids, weight):
    return input_ids[..., None] * weight.sum(0).to(weight.dtype)


@EMBED.add(
    "one-hot-returned",
    "It returns the one-hot vectors, and does not multiply them by the table.",
    "How many numbers has a token in your result: V or H?",
    "A one-hot vector says which row. What has it to meet, so that the row comes out?",
    "one_hot.to(weight.dtype) @ weight, or in one step weight[input_ids].",
)
def _(input_ids, weight):
    return F.one_hot(input_ids, weight.shape[0]).to(weight.dtype)


@EMBED.also("one-hot-returned")
def _(input_ids, weight):
    return F.one_hot(input_ids, weight.shape[0])


@EMBED.also("one-hot-returned")
def _(input_ids, weight):
    return F.one_hot(input_ids, weight.shape[0]).float()


@EMBED.add(
    "one-hot-too-short",
    "The one-hot rows are only as long as the largest id of this text needs, not as the table has rows.",
    "How long must a one-hot row be, so that it can meet the table in a product?",
    "F.one_hot counts up to the largest id that it sees. Which words are in the table, and not in the text?",
    "Say how many classes there are: F.one_hot(input_ids, weight.shape[0]); or take rows, without one-hot.",
    on="the largest id does not occur",
)
def _(input_ids, weight):
    return F.one_hot(input_ids).to(weight.dtype) @ weight


@EMBED.add(
    "one-hot-in-fp32",
    "The one-hot rows are in fp32, whatever the dtype of the table: the product runs for fp32 tables only.",
    "Which dtypes have the two sides of your product here?",
    "`.float()` means fp32. Which dtype should a row have that meets this table?",
    "one_hot.to(weight.dtype) @ weight; or take rows, without one-hot.",
)
def _(input_ids, weight):
    return F.one_hot(input_ids, weight.shape[0]).float() @ weight


@EMBED.add(
    "table-copied",
    "The values are right, but no gradient comes back to `weight`: training would stop here.",
    "Which tensor do your rows come from: `weight` itself, or something that was made from it?",
    "A new nn.Embedding has a parameter of its own, and `from_pretrained` freezes it; `.detach()`, `.data` "
    "and `.tolist()` leave the gradient behind as well.",
    "Take the rows from weight itself, by index or with F.embedding.",
)
def _(input_ids, weight):
    return weight.detach()[input_ids]


@EMBED.add(
    "id-0-never-learns",
    "The values are right, but the row of the id 0 gets no gradient: it is taken for padding.",
    "What does `padding_idx` do to the row that it names?",
    "Is the id 0 an ordinary word here? Its row has to learn as the others do.",
    "Leave padding_idx out.",
)
def _(input_ids, weight):
    return F.embedding(input_ids, weight, padding_idx=0)


@EMBED.add(
    "fp32-returned",
    "The result is fp32, whatever the dtype of the table is.",
    "Which dtype has the table here, and which your result?",
    "Look for `.float()`. A lookup computes nothing, so nothing is to be gained by more digits.",
    "Take the rows as they are; a one-hot is turned into weight.dtype.",
)
def _(input_ids, weight):
    return weight.float()[input_ids]


# The count: a Llama in pieces, each of which can be wrong.


def count(
    V, H, D, L, N, K, d, tied, *, q=1, k=1, v=1, o=1, matrices=3, norms=2, last=1, tables=None, extra=0
):
    """All parameters of a Llama; the options say how many of each there are, and what is added."""
    attention = H * d * (N * (q + o) + K * (k + v))
    layer = attention + matrices * H * D + norms * H
    tables = (1 if tied else 2) if tables is None else tables
    return tables * V * H + L * layer + last * H + extra


@PARAMETER_COUNT.add(
    "tied-ignored",
    "It always counts a head of its own: a tied head is counted twice.",
    "A tied head is the embedding. How many tensors are that?",
    "Compare the results for tied = True and for tied = False. By how much should they differ?",
    "V · H once if tied, twice if not.",
)
def _(*sizes):
    return count(*sizes, tables=2)


@PARAMETER_COUNT.add(
    "head-forgotten",
    "It counts the embedding only: a head that is not tied has numbers of its own.",
    "What is in a model that is not tied, and not in one that is?",
    "Look for `tied` in your lines. Which line of the tree comes last?",
    "Where tied is False, add vocab_size * hidden_size once more.",
)
def _(*sizes):
    return count(*sizes, tables=1)


@PARAMETER_COUNT.add(
    "tied-the-wrong-way",
    "It counts the head when it is tied, and leaves it out when it is not.",
    "Which of the two models has more numbers: the tied one, or the other?",
    "Read your `if` aloud, with the word tied replaced by: it is the same tensor.",
    "1 table if tied, else 2.",
)
def _(*sizes):
    return count(*sizes, tables=2 if sizes[-1] else 1)


@PARAMETER_COUNT.add(
    "embedding-forgotten",
    "The embedding is not counted.",
    "What is the first line of the tree?",
    "Go through the tree from the top. Which line has no term in your sum?",
    "vocab_size * hidden_size for the embedding; and as many for the head if it is not tied.",
)
def _(*sizes):
    return count(*sizes, tables=0 if sizes[-1] else 1)


@PARAMETER_COUNT.add(
    "kv-heads-ignored",
    "k_proj and v_proj are counted as wide as q_proj, as if every query head had its own keys and values.",
    "Which of the four matrices of attention depend on `n_kv_heads`?",
    "In the tree, q_proj of the 1B has 2048 outputs. How many have k_proj and v_proj?",
    "q and o: hidden_size * n_heads * head_dim each. k and v: hidden_size * n_kv_heads * head_dim each.",
)
def _(V, H, D, L, N, K, d, tied):
    return count(V, H, D, L, N, N, d, tied)


@PARAMETER_COUNT.add(
    "all-four-shared",
    "All four matrices of attention are counted with the key/value heads.",
    "Which two of the four are shared between query heads, and which are not?",
    "In the tree, which of q, k, v and o are narrower than the others?",
    "q and o have n_heads · head_dim on one side, k and v n_kv_heads · head_dim.",
)
def _(V, H, D, L, N, K, d, tied):
    return count(V, H, D, L, K, K, d, tied)


@PARAMETER_COUNT.add(
    "output-shared",
    "o_proj is counted as narrow as k_proj; it reads what all the query heads bring.",
    "What comes into o_proj: something from every query head, or from every key/value head?",
    "Look at in_features of o_proj in the tree, and at out_features of q_proj.",
    "o_proj has as many numbers as q_proj: hidden_size * n_heads * head_dim.",
)
def _(V, H, D, L, N, K, d, tied):
    return count(V, H, D, L, N, K, d, tied, o=0, extra=L * H * K * d)


@PARAMETER_COUNT.add(
    "groups-for-heads",
    "k_proj and v_proj are counted with n_heads / n_kv_heads heads, not with n_kv_heads.",
    "How many key/value heads are there: is that an argument, or a quotient?",
    "n_heads / n_kv_heads says how many query heads share one. Which number do k_proj and v_proj need?",
    "k and v: hidden_size * n_kv_heads * head_dim each.",
)
def _(V, H, D, L, N, K, d, tied):
    return count(V, H, D, L, N, N // K, d, tied)


@PARAMETER_COUNT.add(
    "head-dim-ignored",
    "It takes the width of a head to be H / N, whatever head_dim says.",
    "Which argument does not occur in your lines?",
    "The width of all heads together need not be H. Which argument says how wide one head is?",
    "n_heads * head_dim in the place of hidden_size, in q, k, v and o.",
)
def _(V, H, D, L, N, K, d, tied):
    return count(V, H, D, L, N, K, H // N, tied)


@PARAMETER_COUNT.also("head-dim-ignored")
def _(V, H, D, L, N, K, d, tied):
    return count(V, H, D, L, N, 0, H // N, tied, extra=2 * L * H * (H * K // N))


@PARAMETER_COUNT.add(
    "q-and-o-square",
    "q_proj and o_proj are counted as H by H: right only where all heads together are H wide.",
    "How wide are all query heads together: is that always `hidden_size`?",
    "In the tree q_proj of the 1B happens to be 2048 by 2048. Which product of two arguments is its "
    "out_features?",
    "q and o: hidden_size * n_heads * head_dim each.",
)
def _(V, H, D, L, N, K, d, tied):
    return count(V, H, D, L, N, K, d, tied, q=0, o=0, extra=2 * L * H * H)


@PARAMETER_COUNT.add(
    "attention-is-4h²",
    "Attention is counted as four matrices H by H.",
    "Are the four matrices of attention of one shape, in every model?",
    "Compare q_proj and k_proj in the tree. Which arguments make the difference?",
    "hidden_size * head_dim * (2 * n_heads + 2 * n_kv_heads).",
)
def _(V, H, D, L, N, K, d, tied):
    return count(V, H, D, L, 1, 1, H, tied)


@PARAMETER_COUNT.add(
    "head-dim-missing",
    "k_proj and v_proj are counted with one output for each head.",
    "How many numbers does one head produce?",
    "In the tree k_proj of the 1B has 512 outputs, and 8 heads. What is 512 / 8?",
    "n_kv_heads * head_dim outputs.",
)
def _(V, H, D, L, N, K, d, tied):
    return count(V, H, D, L, N, K, d, tied, k=0, v=0, extra=2 * L * H * K)


@PARAMETER_COUNT.add(
    "one-head-only",
    "The matrices of attention are counted for one head.",
    "How many heads read from a token, and are their rows in one matrix or in many?",
    "q_proj holds the rows of all query heads, one under another.",
    "n_heads * head_dim outputs for q, n_kv_heads * head_dim for k and v.",
)
def _(V, H, D, L, N, K, d, tied):
    return count(V, H, D, L, 1, 1, d, tied)


@PARAMETER_COUNT.add(
    "every-head-full-width",
    "Each head is counted as wide as the whole token.",
    "How many features does one head look with: H, or fewer?",
    "In the tree q_proj of the 1B is 2048 by 2048, and there are 32 heads in it.",
    "All heads of q together: hidden_size by n_heads * head_dim.",
)
def _(V, H, D, L, N, K, d, tied):
    return count(V, H, D, L, N, K, H, tied)


@PARAMETER_COUNT.add(
    "o-proj-forgotten",
    "o_proj is not counted.",
    "How many lines has attention in the tree?",
    "Query, key, value: which matrix brings their result back to H features?",
    "Add hidden_size * n_heads * head_dim once more.",
)
def _(*sizes):
    return count(*sizes, o=0)


@PARAMETER_COUNT.add(
    "values-forgotten",
    "Of k_proj and v_proj only one is counted.",
    "How many lines has attention in the tree?",
    "Keys say where to look, values what is found there. Does one matrix make both?",
    "2 * n_kv_heads, for k and for v.",
)
def _(*sizes):
    return count(*sizes, v=0)


@PARAMETER_COUNT.add(
    "attention-forgotten",
    "Attention is not counted.",
    "What are the two halves of a layer?",
    "Go through one layer of the tree line by line. Which lines have no term in your sum?",
    "hidden_size * head_dim * (2 * n_heads + 2 * n_kv_heads) for each layer.",
)
def _(*sizes):
    return count(*sizes, q=0, k=0, v=0, o=0)


@PARAMETER_COUNT.add(
    "two-ffn-matrices",
    "The feed-forward network is counted with two matrices; Llama's has three.",
    "How many lines has `mlp` in the tree?",
    "Up and down are two. Which one is the third?",
    "3 * hidden_size * intermediate_size: gate, up, down.",
)
def _(*sizes):
    return count(*sizes, matrices=2)


@PARAMETER_COUNT.add(
    "one-ffn-matrix",
    "The feed-forward network is counted with one matrix; Llama's has three.",
    "How many lines has `mlp` in the tree?",
    "All three of them have the sides H and D.",
    "3 * hidden_size * intermediate_size: gate, up, down.",
)
def _(*sizes):
    return count(*sizes, matrices=1)


@PARAMETER_COUNT.add(
    "intermediate-is-4h",
    "The feed-forward network is counted with a width of 4H, whatever `intermediate_size` says.",
    "Which argument does not occur in your lines?",
    "Where does the 4 come from? In the tree the 1B happens to have 8192 = 4 · 2048; look at the others.",
    "3 * hidden_size * intermediate_size.",
)
def _(V, H, D, L, N, K, d, tied):
    return count(V, H, 4 * H, L, N, K, d, tied)


@PARAMETER_COUNT.add(
    "last-norm-forgotten",
    "One norm is missing: the one after the last layer.",
    "How many norms stand outside the layers?",
    "Compare your result with the right one: by how many numbers is it off, and what is that big?",
    "Add hidden_size once, outside the layers.",
)
def _(*sizes):
    return count(*sizes, last=0)


@PARAMETER_COUNT.add(
    "one-norm-per-layer",
    "One norm in each layer is missing.",
    "How many norms has one layer in the tree?",
    "Each half of a layer has a norm before it. How many halves are there?",
    "2 * hidden_size for each layer, and one more at the end.",
)
def _(*sizes):
    return count(*sizes, norms=1)


@PARAMETER_COUNT.add(
    "norms-forgotten",
    "The norms are not counted.",
    "Which lines of the tree have no matrix, and still numbers to learn?",
    "An RMSNorm has one weight for each feature. How many of them are there in a model?",
    "(2 * n_layers + 1) * hidden_size.",
)
def _(*sizes):
    return count(*sizes, norms=0, last=0)


@PARAMETER_COUNT.add(
    "norms-count-1",
    "A norm is counted as one number; it has one for each feature.",
    "How many weights has a norm of H features?",
    "A norm scales every feature by a weight of its own.",
    "hidden_size for each norm.",
)
def _(V, H, D, L, N, K, d, tied):
    return count(V, H, D, L, N, K, d, tied, norms=0, last=0, extra=2 * L + 1)


@PARAMETER_COUNT.add(
    "norms-with-bias",
    "Every norm is counted with a bias; Llama's have a weight only.",
    "What does a Llama's norm learn, beside its weight?",
    "nn.LayerNorm has a weight and a bias. Which norm is in the tree?",
    "hidden_size for each norm, not twice as many.",
)
def _(*sizes):
    return count(*sizes, norms=4, last=2)


@PARAMETER_COUNT.add(
    "biases-counted",
    "Biases are counted; the matrices of a Llama have none.",
    "What does the tree say at the end of every Linear?",
    "bias=False. Which term of yours is a number of outputs, not a product?",
    "in · out for each matrix, and no more.",
)
def _(V, H, D, L, N, K, d, tied):
    return count(V, H, D, L, N, K, d, tied, extra=L * (d * (N + 2 * K) + H + 2 * D + H))


@PARAMETER_COUNT.add(
    "one-layer-only",
    "Only one layer is counted.",
    "Where does `n_layers` come in?",
    "The tree writes `16 x DecoderLayer`: it prints one for all.",
    "n_layers times what is in one layer.",
)
def _(V, H, D, L, N, K, d, tied):
    return count(V, H, D, 1, N, K, d, tied)


@PARAMETER_COUNT.add(
    "all-times-layers",
    "Embedding, head or last norm are multiplied by the number of layers too.",
    "Which lines of the tree stand outside `layers`?",
    "What is there once in the model, and what once in each layer? Where does your bracket close?",
    "n_layers times one layer only; then add what is outside.",
)
def _(V, H, D, L, N, K, d, tied):
    return L * count(V, H, D, 1, N, K, d, tied)


@PARAMETER_COUNT.also("all-times-layers")
def _(V, H, D, L, N, K, d, tied):
    return count(V, H, D, L, N, K, d, tied, tables=L * (1 if tied else 2))


@PARAMETER_COUNT.also("all-times-layers")
def _(V, H, D, L, N, K, d, tied):
    return count(V, H, D, L, N, K, d, tied, last=L)


@PARAMETER_COUNT.add(
    "layers-twice",
    "Attention is multiplied by the number of layers twice.",
    "How often does `n_layers` come in, for the matrices of attention?",
    "Follow one term of your sum to the end, and write down everything that it is multiplied by.",
    "Multiply by n_layers once, outside the bracket of the layer.",
)
def _(V, H, D, L, N, K, d, tied):
    return count(V, H, D, L, N, K, d, tied, q=L, k=L, v=L, o=L)


@PARAMETER_COUNT.add(
    "float-returned",
    "The number is right, and a float: some `/` is in it.",
    "Which of `/` and `//` gives an integer?",
    "Look for a division. Does the count need one at all?",
    "Every term is a product of integers. Leave the division out, or write `//`.",
)
def _(*sizes):
    return float(count(*sizes))


@LOGITS_SHAPE.add(
    "h-for-v",
    "The last axis is not the features: the head turns them into scores.",
    "What does the head do with the H features of a token?",
    "Look at out_features of lm_head in the printed tree. Which size of the model is that?",
    "The head is a matrix [V, H]: V scores come out for each token.",
)
def _():
    return torch.tensor([3.0, 7.0, 32.0]).double(), torch.tensor(96.0).double()


@LOGITS_SHAPE.also("h-for-v")
def _():
    return torch.tensor([3.0, 7.0, 32.0]).double(), torch.tensor(45.0).double()


@LOGITS_SHAPE.add(
    "all-needed",
    "The shape is right. But most of these scores are about words that you know already.",
    "After which position of a text does its next token stand?",
    "The scores at position i are for the token at i + 1. For which i is that one still unknown?",
    "Only the last row of each text: B times V.",
)
def _():
    return torch.tensor([3.0, 7.0, 15.0]).double(), torch.tensor(315.0).double()


@LOGITS_SHAPE.add(
    "one-text-only",
    "The shape is right. 15 scores tell how one text goes on.",
    "How many texts are there, and does each go on in its own way?",
    "Count the texts that want a next token.",
    "V scores for each of the B texts: B times V.",
)
def _():
    return torch.tensor([3.0, 7.0, 15.0]).double(), torch.tensor(15.0).double()


@LOGITS_SHAPE.add(
    "ids-for-scores",
    "The shape is right. 3 is how many new ids there will be: how many scores are compared to find them?",
    "To find the largest of some numbers, how many must you look at?",
    "Each new id is the place of the largest score in one row. How long is a row?",
    "V scores for each of the B texts: B times V.",
)
def _():
    return torch.tensor([3.0, 7.0, 15.0]).double(), torch.tensor(3.0).double()


@LOGITS_SHAPE.add(
    "one-text-all-positions",
    "The shape is right. These are all scores of one text, also those for words that you know.",
    "How many texts are there, and which position of each is asked?",
    "The scores at position i are for the token at i + 1. Which of them are still unknown?",
    "The last row of each text: B times V.",
)
def _():
    return torch.tensor([3.0, 7.0, 15.0]).double(), torch.tensor(105.0).double()


@LOGITS_SHAPE.add(
    "exchanged",
    "Texts and tokens are exchanged.",
    "Which axis comes first: the one that counts texts, or the one that counts tokens?",
    "What is the shape of the ids that go in? The first two axes stay what they are.",
    "[B, S, V]: three texts, seven tokens.",
)
def _():
    return torch.tensor([7.0, 3.0, 15.0]).double(), torch.tensor(45.0).double()


@LOGITS_SHAPE.add(
    "one-more-token",
    "No token is added: the scores are for the tokens that went in.",
    "How many tokens does the model see, and how many rows of scores come out?",
    "Every token on the way keeps its place. Does a line of the table of shapes change S?",
    "[B, S, V], with the S that went in.",
)
def _():
    return torch.tensor([3.0, 8.0, 15.0]).double(), torch.tensor(45.0).double()


@SHIFTED_TARGETS.add(
    "not-shifted",
    "Each token is asked to predict itself.",
    "What must the model say after the first token: the first, or the second?",
    "Write inputs and targets one under the other. What stands under the first input?",
    "The targets are one token further: they begin with the second.",
)
def _(input_ids):
    return input_ids, input_ids.clone()


@SHIFTED_TARGETS.also("not-shifted")
def _(input_ids):
    return input_ids[:, :-1], input_ids[:, :-1]


@SHIFTED_TARGETS.also("not-shifted")
def _(input_ids):
    return input_ids[:, 1:], input_ids[:, 1:]


@SHIFTED_TARGETS.add(
    "exchanged",
    "Inputs and targets are exchanged: the model would learn to read backwards.",
    "Which of the two begins with the first token of the text?",
    "The input is what has been read. Does it end with the last token, or begin with the first?",
    "First all but the last token, then all but the first.",
)
def _(input_ids):
    return input_ids[:, 1:], input_ids[:, :-1]


@SHIFTED_TARGETS.add(
    "shifted-twice",
    "The targets are two tokens ahead: the next one is skipped.",
    "How far is the target from its input, in tokens?",
    "On 5, 6, 7, 8: what should stand under the 5? Look at the numbers in your slices.",
    "One token further: the slices are :-1 and 1:.",
)
def _(input_ids):
    return input_ids[:, :-2], input_ids[:, 2:]


@SHIFTED_TARGETS.add(
    "wrapped-around",
    "The last token is asked to predict the first: the text is closed to a ring.",
    "What comes after the last token of a text?",
    "`roll` brings what falls out at one end back at the other. Is that token the next one?",
    "Nothing is known to follow the last token: leave it out of the inputs.",
)
def _(input_ids):
    return input_ids, input_ids.roll(-1, dims=1)


@SHIFTED_TARGETS.add(
    "rolled-backwards",
    "The targets are rolled the other way: each token is asked for the one before it.",
    "On 5, 6, 7, 8: which number stands under the 6 in your targets?",
    "`roll` with a positive number moves everything to the right.",
    "Two slices do it: all but the last, and all but the first.",
)
def _(input_ids):
    return input_ids, input_ids.roll(1, dims=1)


@SHIFTED_TARGETS.add(
    "over-texts",
    "It is cut along the batch: whole texts are left out, and one text is to predict another.",
    "Which axis counts the tokens of a text?",
    "Without a comma, a slice cuts the first axis. Which one is that here?",
    "input_ids[:, :-1] cuts the second axis.",
)
def _(input_ids):
    return input_ids[:-1], input_ids[1:]


@SHIFTED_TARGETS.add(
    "last-only",
    "Only the last token is a target: the other positions would teach nothing.",
    "How many predictions does a decoder make for a text of S tokens?",
    "There are logits at every position. Which token is the answer at the first one?",
    "A target for every input: all tokens but the first.",
)
def _(input_ids):
    return input_ids[:, :-1], input_ids[:, -1:]


@SHIFTED_TARGETS.also("last-only")
def _(input_ids):
    return input_ids[:, :-1], input_ids[:, -1]


@SHIFTED_TARGETS.add(
    "filled-up",
    "The last token is kept, and a made-up target is put under it.",
    "Is the number that you put there a token that followed?",
    "With a target that is only a filler, the loss has to know that it is one. Which input has no answer?",
    "Leave the last token out of the inputs.",
)
def _(input_ids):
    return input_ids, F.pad(input_ids[:, 1:], (0, 1))


@SHIFTED_TARGETS.also("filled-up")
def _(input_ids):
    return input_ids, F.pad(input_ids[:, 1:], (0, 1), value=-100)


@SHIFTED_TARGETS.add(
    "texts-run-together",
    "The texts are strung together: the end of one is to predict the beginning of the next.",
    "Do the texts of a batch follow one another?",
    "How many axes has your result, and how many has `input_ids`?",
    "Cut every text for itself, along axis 1, and keep both axes.",
)
def _(input_ids):
    return input_ids.flatten()[:-1], input_ids.flatten()[1:]


@SHIFTED_TARGETS.add(
    "inputs-not-cut",
    "The inputs still have their last token, for which there is no target.",
    "How many inputs and how many targets come back for a text?",
    "Which token of the text has nothing after it?",
    "The inputs are all but the last token.",
)
def _(input_ids):
    return input_ids, input_ids[:, 1:]


@SHIFTED_TARGETS.add(
    "targets-not-cut",
    "The targets still have the first token, which nobody was asked for.",
    "How many inputs and how many targets come back for a text?",
    "What has been read before the first token, that could predict it?",
    "The targets are all but the first token.",
)
def _(input_ids):
    return input_ids[:, :-1], input_ids


@APPEND_NEXT.add(
    "first-position",
    "It appends what the first position predicts: what follows the first word, again and again.",
    "After which token of the text does the new one come?",
    "best has one id for each position. Which of them was chosen with the whole text in view?",
    "Take the last column of best, and keep its axis: -1:.",
)
def repair_append_next(input_ids, logits):
    best = logits.argmax(-1)  # [B, S]
    return torch.cat((input_ids, best[:, :1]), dim=1)


@APPEND_NEXT.also("first-position")
def _(input_ids, logits):
    return torch.cat((input_ids, logits[:, 0].argmax(-1, keepdim=True)), 1)


@APPEND_NEXT.add(
    "second-to-last",
    "It appends what the last position but one predicts: a word that is in the text already, if all is well.",
    "The scores at a position are about which token?",
    "The token at the last position was predicted one position earlier. What is predicted at the last one?",
    "The index is -1, not -2.",
)
def _(input_ids, logits):
    return torch.cat((input_ids, logits.argmax(-1)[:, -2:-1]), 1)


@APPEND_NEXT.add(
    "all-positions",
    "It appends the predictions of all positions: the text doubles at each step.",
    "How many tokens should the text have after one step?",
    "Every position predicts the token after it. For how many of them is that token not in the text yet?",
    "Append the last column alone.",
)
def _(input_ids, logits):
    return torch.cat((input_ids, logits.argmax(-1)), 1)


@APPEND_NEXT.add(
    "predictions-for-the-text",
    "It keeps only the predictions: the words of the text are lost.",
    "Where is the text that came in?",
    "What was written is to stay as it is, whatever the model would have said. What is appended to it?",
    "torch.cat of input_ids and the last column of best.",
)
def _(input_ids, logits):
    return logits.argmax(-1)


@APPEND_NEXT.also("predictions-for-the-text")
def _(input_ids, logits):
    return torch.cat((input_ids[:, :1], logits.argmax(-1)), 1)


@APPEND_NEXT.add(
    "in-front",
    "The new token is put in front of the text.",
    "At which end of the text does the new token belong?",
    "torch.cat keeps the order in which it is given its parts.",
    "input_ids first, the new column second.",
)
def _(input_ids, logits):
    return torch.cat((logits.argmax(-1)[:, -1:], input_ids), 1)


@APPEND_NEXT.add(
    "next-only",
    "Only the new token comes back, without the text.",
    "What does the model read in the next step?",
    "The result has S + 1 tokens for each text. How many has yours?",
    "torch.cat of input_ids and the new column, along axis 1.",
)
def _(input_ids, logits):
    return logits.argmax(-1)[:, -1:]


@APPEND_NEXT.add(
    "least-likely",
    "It appends the token with the lowest score.",
    "Which score does the likeliest token have?",
    "Is the sign of a score turned round somewhere, or another function called?",
    "argmax, not argmin.",
)
def _(input_ids, logits):
    return torch.cat((input_ids, logits.argmin(-1)[:, -1:]), 1)


@APPEND_NEXT.add(
    "over-positions",
    "It looks for the largest score among the positions, not among the words.",
    "Which axis of the logits counts the words?",
    "argmax returns a place on the axis that it is given. Which places are ids?",
    "argmax over the last axis.",
)
def _(input_ids, logits):
    return torch.cat((input_ids, logits.argmax(1)[:, -1:]), 1)


@APPEND_NEXT.add(
    "positions-averaged",
    "It averages the scores of all positions first.",
    "Does what the first word alone suggested still count, once the whole text was read?",
    "The last position has seen the whole text. What do the others add?",
    "The scores of the last position, logits[:, -1], alone.",
)
def _(input_ids, logits):
    return torch.cat((input_ids, logits.mean(1).argmax(-1, keepdim=True)), 1)


@APPEND_NEXT.also("positions-averaged")
def _(input_ids, logits):
    return torch.cat((input_ids, logits.sum(1).argmax(-1, keepdim=True)), 1)


@APPEND_NEXT.add(
    "last-text-for-all",
    "All texts get the next token of the last text.",
    "How many next tokens are there, for two texts?",
    "Without a comma, [-1] picks from the first axis. What does that axis count?",
    "logits[:, -1] is the last position of every text.",
)
def _(input_ids, logits):
    best = logits[-1, -1].argmax().expand(len(input_ids), 1)
    return torch.cat((input_ids, best), 1)


@APPEND_NEXT.add(
    "one-for-the-batch",
    "It looks for one largest score in the whole batch: what comes back need not be an id.",
    "How many next tokens are there, for two texts?",
    "argmax without an axis counts through the whole tensor. Which axis should it look along?",
    "argmax(-1) over the scores of the last position: one for each text.",
)
def _(input_ids, logits):
    return torch.cat((input_ids, logits[:, -1].argmax().expand(len(input_ids), 1)), 1)


@APPEND_NEXT.add(
    "score-appended",
    "It appends the largest score, not the id that has it.",
    "Is the largest number wanted, or the place where it stands?",
    "Look at the dtype of what comes back. Which of max, amax and argmax gives a place?",
    "argmax gives the id.",
)
def _(input_ids, logits):
    return torch.cat((input_ids, logits[:, -1].amax(-1, keepdim=True)), 1)
