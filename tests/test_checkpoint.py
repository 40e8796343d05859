"""Checkpoints: what Hugging Face writes we read, what we write it reads, and what is wrong is named."""

import json
import warnings
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from test_model import SMALL, hostile, twins

from lecture_utils import llama
from lecture_utils.llama import Llama, LlamaConfig
from lecture_utils.parity import reference

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
CONFIGS = {
    "plain": SMALL,
    "tied": replace(SMALL, tie_word_embeddings=True),
    "head_dim apart": replace(SMALL, head_dim=12),
    "biases": replace(SMALL, attention_bias=True, mlp_bias=True),
    "linear": replace(SMALL, rope_scaling={"rope_type": "linear", "factor": 4.0}),
    "dynamic": replace(SMALL, rope_scaling={"rope_type": "dynamic", "factor": 2.0}),
    "llama3": replace(SMALL, rope_scaling=LLAMA3, rope_theta=500000.0, rms_norm_eps=1e-5),
}
IDS = torch.randint(50, (2, 9), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("shards", ["whole", "sharded"])
def test_what_hugging_face_writes_we_read(name, shards, tmp_path):
    ours, theirs = twins(CONFIGS[name])
    theirs.save_pretrained(tmp_path, max_shard_size="20KB" if shards == "sharded" else "5GB")
    assert (tmp_path / "model.safetensors.index.json").exists() == (shards == "sharded")
    read = Llama.from_pretrained(tmp_path)
    assert replace(read.config, max_position_embeddings=256) == CONFIGS[name] and not read.training
    for (key, tensor), (other, expected) in zip(
        read.state_dict().items(), ours.state_dict().items(), strict=True
    ):
        assert key == other and torch.equal(tensor, expected), key
    with torch.no_grad():
        torch.testing.assert_close(read(IDS), theirs(IDS).logits, atol=1e-5, rtol=1e-5)
    if CONFIGS[name].tie_word_embeddings:
        assert read.lm_head.weight is read.model.embed_tokens.weight


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_we_write_hugging_face_reads_bit_for_bit(name, dtype, tmp_path):
    ours = hostile(Llama(CONFIGS[name]), 4).to(dtype)
    ours.save_pretrained(tmp_path / "new" / "folder")
    theirs = reference.LlamaForCausalLM.from_pretrained(tmp_path / "new" / "folder", dtype=dtype)
    state = theirs.state_dict()
    for key, tensor in ours.state_dict().items():
        assert torch.equal(tensor, state[key]) and state[key].dtype == dtype, key
    again = Llama.from_pretrained(tmp_path / "new" / "folder")
    assert again.config == ours.config and again.lm_head.weight.dtype == dtype
    with torch.no_grad():
        assert torch.equal(again(IDS), ours(IDS))
        if dtype == torch.float32:
            torch.testing.assert_close(ours(IDS), theirs.eval()(IDS).logits, atol=1e-5, rtol=1e-5)


def test_dtype_and_device_are_those_that_are_asked_for(tmp_path):
    Llama(SMALL).save_pretrained(tmp_path)
    model = Llama.from_pretrained(tmp_path, dtype=torch.bfloat16, attn_implementation="eager")
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    assert model.model.layers[0].self_attn.attend is llama.causal_attention


# Written down from Meta's model.py, not taken from the converter.
META = {
    "attention.wq": "self_attn.q_proj",
    "attention.wk": "self_attn.k_proj",
    "attention.wv": "self_attn.v_proj",
    "attention.wo": "self_attn.o_proj",
    "feed_forward.w1": "mlp.gate_proj",
    "feed_forward.w2": "mlp.down_proj",
    "feed_forward.w3": "mlp.up_proj",
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def meta_state(state, config):
    """A state under Meta's names, rows of queries and keys in Meta's order."""
    theirs = {
        "tok_embeddings.weight": state["model.embed_tokens.weight"],
        "norm.weight": state["model.norm.weight"],
        "output.weight": state["lm_head.weight"],
    }
    heads = {"attention.wq": config.num_attention_heads, "attention.wk": config.num_key_value_heads}
    for layer in range(config.num_hidden_layers):
        for meta, ours in META.items():
            tensor = state[f"model.layers.{layer}.{ours}.weight"]
            moved = llama.half_to_interleaved(tensor, heads[meta]) if meta in heads else tensor
            theirs[f"layers.{layer}.{meta}.weight"] = moved
    return theirs


def test_metas_original_layout_is_converted():
    model = hostile(Llama(SMALL), 3)
    meta = meta_state(model.state_dict(), SMALL)
    assert len(meta) == len(model.state_dict())
    assert not torch.equal(meta["layers.0.attention.wq.weight"],
                           model.state_dict()["model.layers.0.self_attn.q_proj.weight"])  # fmt: skip
    converted = llama.convert_meta(meta | {"rope.freqs": torch.ones(4)}, SMALL)
    assert converted.keys() == model.state_dict().keys()
    assert all(torch.equal(converted[name], tensor) for name, tensor in model.state_dict().items())


@pytest.fixture
def folder(tmp_path):
    hostile(Llama(SMALL)).save_pretrained(tmp_path)
    return tmp_path


def changed(folder, change):
    state = load_file(folder / "model.safetensors")
    change(state)
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})


def told(folder, kind, words):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(kind, match=words) as error:
            Llama.from_pretrained(folder)
    assert "\n" not in str(error.value)


def test_keys_that_are_missing_left_over_or_of_another_shape_are_named(folder):
    def change(state):
        del state["model.layers.1.mlp.up_proj.weight"]
        state["model.layers.1.mlp.side_proj.weight"] = torch.ones(2)
        state["model.norm.weight"] = torch.ones(3)

    changed(folder, change)
    told(folder, ValueError, r"missing: model\.layers\.1\.mlp\.up_proj\.weight; left over: "
         r"model\.layers\.1\.mlp\.side_proj\.weight; of another shape: model\.norm\.weight is \[3\], "
         r"expected \[32\]")  # fmt: skip


def test_a_head_that_is_missing_is_not_tied_in_silence(folder):
    changed(folder, lambda state: state.pop("lm_head.weight"))
    told(folder, ValueError, r"missing: lm_head\.weight")


def test_old_files_with_frequencies_are_read(folder):
    changed(folder, lambda s: s.update({"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)}))
    assert Llama.from_pretrained(folder)


def test_a_file_that_is_cut_short_absent_or_a_pickle_is_told(folder):
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    told(folder, ValueError, "is no safetensors file, or was cut short")
    file.write_bytes(b"no tensors")
    told(folder, ValueError, "is no safetensors file, or was cut short")
    file.unlink()
    told(folder, FileNotFoundError, r"holds no model\.safetensors$")
    torch.save({}, folder / "pytorch_model.bin")
    told(folder, FileNotFoundError, r"holds no model\.safetensors, but pytorch_model\.bin, a pickle")


def test_a_shard_that_is_absent_and_an_index_that_is_none_are_told(tmp_path):
    twins(SMALL)[1].save_pretrained(tmp_path, max_shard_size="20KB")
    shard = sorted(tmp_path.glob("model-*.safetensors"))[1]
    shard.unlink()
    told(tmp_path, FileNotFoundError, f"holds no {shard.name}")
    (tmp_path / "model.safetensors.index.json").write_text("[]")
    told(tmp_path, ValueError, "is no index of a checkpoint")


def test_another_family_and_a_hub_id_without_a_network_are_told(folder, monkeypatch):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "mistral"}))
    told(folder, ValueError, "model_type is 'mistral': only 'llama' can be read")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    told(
        "nobody/no-such-llama",
        FileNotFoundError,
        "could not be had from the hub .*check the name and the network",
    )


def test_a_config_is_written_as_it_is_read(tmp_path):
    for name, config in CONFIGS.items():
        Llama(config).save_pretrained(tmp_path / name)
        assert LlamaConfig.from_pretrained(tmp_path / name) == config
