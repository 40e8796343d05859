"""What a Llama is, in numbers: the fields of Hugging Face's `config.json`."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from . import expect


@dataclass(frozen=True)
class LlamaConfig:
    """The shape of a Llama. Fields and defaults are those of the `config.json` of transformers 4.

    (transformers 5 keeps `rope_theta` and `rope_scaling` in one field; `from_dict` reads both.)

    Args:
        vocab_size: V, number of token ids.
        hidden_size: H, features of one token in the residual stream.
        intermediate_size: D, features inside the feed-forward network.
        num_hidden_layers: L, decoder layers.
        num_attention_heads: N, query heads.
        num_key_value_heads: K, key/value heads; N if None. N must be a multiple of K.
        head_dim: d, features of one head, even; H / N if None.
        max_position_embeddings: longest sequence the model was made for, in tokens.
        rms_norm_eps: added to the mean of squares in every RMSNorm.
        rope_theta: base of the rotary frequencies.
        rope_scaling: how rotary frequencies are changed for longer texts, as in `config.json`:
            `{"rope_type": "linear" | "dynamic" | "llama3", "factor": …}`; None for no change.
        tie_word_embeddings: whether the output head is the embedding itself.
        attention_bias, mlp_bias: whether those linear layers have a bias (Llama's have none).

    Raises:
        ValueError: a size is not a positive integer, or sizes do not divide each other.
    """

    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    max_position_embeddings: int = 2048
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    rope_scaling: dict[str, Any] | None = None
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False

    def __post_init__(self) -> None:
        # A frozen dataclass fills its own defaults through object.__setattr__.
        if self.num_key_value_heads is None:
            object.__setattr__(self, "num_key_value_heads", self.num_attention_heads)
        for name in (
            "vocab_size",
            "hidden_size",
            "intermediate_size",
            "num_hidden_layers",
            "num_attention_heads",
            "num_key_value_heads",
            "max_position_embeddings",
        ):
            expect.positive_int(name, getattr(self, name))
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is not divisible by "
                f"num_attention_heads {self.num_attention_heads}"
            )
        if self.head_dim is None:
            object.__setattr__(self, "head_dim", self.hidden_size // self.num_attention_heads)
        expect.positive_int("head_dim", self.head_dim, even=True)  # RoPE turns pairs
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"num_attention_heads {self.num_attention_heads} is not a multiple of "
                f"num_key_value_heads {self.num_key_value_heads}"
            )
        expect.above_zero("rms_norm_eps", self.rms_norm_eps)
        expect.above_zero("rope_theta", self.rope_theta)
        if self.rope_scaling is not None:
            expect.instance("rope_scaling", self.rope_scaling, dict)
        for name in ("tie_word_embeddings", "attention_bias", "mlp_bias"):
            expect.instance(name, getattr(self, name), bool)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "LlamaConfig":
        """A config from the contents of a `config.json`, of transformers 4 or 5; other fields are ignored.

        Raises:
            ValueError: the file describes another model family or another activation.
        """
        expect.instance("values", values, dict)
        family = values.get("model_type", "llama")
        if family != "llama":
            raise ValueError(f"model_type is {family!r}: only 'llama' can be read")
        activation = values.get("hidden_act", "silu")
        if activation != "silu":
            raise ValueError(f"hidden_act is {activation!r}: a Llama uses 'silu'")
        values = dict(values)
        rope = dict(values.pop("rope_parameters", None) or values.get("rope_scaling") or {})
        # transformers 5 keeps base and scaling together; the name was `type` before `rope_type`.
        if "rope_theta" in rope:
            values["rope_theta"] = rope.pop("rope_theta")
        if "type" in rope:
            rope.setdefault("rope_type", rope.pop("type"))
        values["rope_scaling"] = rope if rope.get("rope_type", "default") != "default" else None
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in known})

    @classmethod
    def from_pretrained(cls, folder_or_hub_id: str | Path) -> "LlamaConfig":
        """The config of a checkpoint: a folder with a `config.json`, or the id of a model on the hub.

        Raises:
            FileNotFoundError: there is no such folder, and the hub does not answer or does not know it.
            ValueError: the file is no JSON, or describes another model family.
        """
        file = Path(folder_or_hub_id) / "config.json"
        if not file.is_file():
            if Path(folder_or_hub_id).is_dir():
                raise FileNotFoundError(f"the folder {folder_or_hub_id} holds no config.json")
            from huggingface_hub import hf_hub_download

            try:
                file = Path(hf_hub_download(str(folder_or_hub_id), "config.json"))
            except Exception as error:
                raise FileNotFoundError(
                    f"{folder_or_hub_id!r} is no folder here, and its config could not be had from "
                    f"the hub ({type(error).__name__}): check the name and the network"
                ) from error
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{file} is not valid JSON: {error}") from error
        if not isinstance(values, dict):
            raise ValueError(f"{file} must hold an object of config fields, not a {type(values).__name__}")
        return cls.from_dict(values)

    def to_dict(self) -> dict[str, Any]:
        """The contents of a `config.json` that Hugging Face reads as this config."""
        family = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu"}
        return family | {field.name: getattr(self, field.name) for field in fields(self)}

    def parameter_counts(self) -> dict[str, int]:
        """Number of parameters by part: embedding, attention, feed_forward, norms, lm_head.

        The head counts 0 when it is tied: it is the embedding, not a copy.
        """
        q_size = self.num_attention_heads * self.head_dim
        kv_size = self.num_key_value_heads * self.head_dim
        attention = self.hidden_size * (2 * q_size + 2 * kv_size)  # q, o; k, v
        if self.attention_bias:
            attention += q_size + 2 * kv_size + self.hidden_size
        feed_forward = 3 * self.hidden_size * self.intermediate_size  # gate, up, down
        if self.mlp_bias:
            feed_forward += 2 * self.intermediate_size + self.hidden_size
        embedding = self.vocab_size * self.hidden_size
        return {
            "embedding": embedding,
            "attention": self.num_hidden_layers * attention,
            "feed_forward": self.num_hidden_layers * feed_forward,
            "norms": (2 * self.num_hidden_layers + 1) * self.hidden_size,
            "lm_head": 0 if self.tie_word_embeddings else embedding,
        }

    @property
    def num_parameters(self) -> int:
        """Total number of parameters; a tied head counts once."""
        return sum(self.parameter_counts().values())
