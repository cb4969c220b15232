"""Models that are called many times, each call with what the calls before have left: `calls/`.

vad.xml             state in and out, as in Silero's voice activity detector: `state` goes in, `stateN` comes out
vad_stateful.xml    the same after OpenVINO's MakeStateful: the state is a variable
kv_cache.xml        attention of one token on all before, with the cache of keys and values held outside: it grows
gru.xml             a GRU as a TensorIterator over a whole sequence
gru_stateful.xml    the same after OpenVINO's LowLatency2: a call is one time step, the state is a variable
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import openvino as ov
import openvino.opset13 as ops
from building import Body, Value, constant, model, parameter, tensor_iterator
from openvino._offline_transformations import apply_low_latency_transformation, apply_make_stateful_transformation
from sample import CONFIGURATION, Array, assert_equal, ir_files

FRAMES, FRAME, HIDDEN = 60, 16, 8
TOKENS, WIDTH = 10, 6
STEPS, FEATURES, UNITS = 9, 4, 5


@dataclass(frozen=True)
class Stream:
    """A model, the inputs of its calls with a leading axis of calls, and those that are the same in all.

    `carried` are outputs that become inputs, with what the first call gets. `formula` are the outputs of all calls, a
    leading axis of calls, without those that are carried.
    """

    model: ov.Model
    calls: dict[str, Array]
    same: dict[str, Array]
    carried: dict[str, tuple[str, Array]]
    formula: dict[str, Array]


@dataclass(frozen=True)
class Streams:
    """All streams of the folder, by name."""

    streams: dict[str, Stream]

    @property
    def inputs(self) -> dict[str, Array]:
        """What calls get, by the names of model and input."""
        return {f"{name} {key}": value for name, one in self.streams.items() for key, value in one.calls.items()}

    @property
    def formula(self) -> dict[str, Array]:
        """What comes out, by the names of model and output."""
        return {f"{name} {key}": value for name, one in self.streams.items() for key, value in one.formula.items()}

    def write(self, folder: Path) -> None:
        """Write each model, NAME_calls.npz, and NAME_expected.npz, which OpenVINO has computed call by call."""
        folder.mkdir(exist_ok=True)
        for name, stream in self.streams.items():
            files = ir_files(stream.model)
            outputs = called(ov.Core().read_model(files.xml.encode(), files.weights), stream)
            assert_equal(outputs, stream.formula)
            (folder / f"{name}.xml").write_text(files.xml, encoding="utf-8", newline="\n")
            (folder / f"{name}.bin").write_bytes(files.weights)
            np.savez(folder / f"{name}_calls.npz", **stream.calls)  # type: ignore[arg-type]
            np.savez(folder / f"{name}_expected.npz", **outputs)  # type: ignore[arg-type]


def called(model: ov.Model, stream: Stream) -> dict[str, Array]:
    """What one infer request of OpenVINO computes in the calls, one after the other."""
    request = ov.Core().compile_model(model, "CPU", CONFIGURATION).create_infer_request()
    carried = dict(stream.carried.values())
    found: dict[str, list[Array]] = {name: [] for name in stream.formula}
    for number in range(len(next(iter(stream.calls.values())))):
        given = {name: value[number] for name, value in stream.calls.items()} | stream.same | carried
        request.start_async({name: ov.Tensor(np.array(value, order="C")) for name, value in given.items()})
        request.wait()
        for name, values in found.items():
            values.append(np.array(request.get_tensor(name).data))
        carried = {key: np.array(request.get_tensor(name).data) for name, (key, _first) in stream.carried.items()}
    return {name: np.array(values) for name, values in found.items()}


def streams() -> Streams:
    """All of them."""
    detector, attention, recurrent = vad(), kv_cache(), gru()
    return Streams(
        {
            "vad": detector,
            "vad_stateful": vad_stateful(detector),
            "kv_cache": attention,
            "gru": recurrent,
            "gru_stateful": gru_stateful(recurrent),
        }
    )


def sigmoid(value: Array) -> Array:
    """The logistic function."""
    return np.asarray(1 / (1 + np.exp(-value)))


def vad() -> Stream:
    """A probability of speech for each frame: a layer, an LSTM cell, a layer."""
    rng = np.random.default_rng(20)
    weights = {
        "frame_weight": rng.normal(0, 0.5, (FRAME, HIDDEN)),
        "W": rng.normal(0, 0.5, (4 * HIDDEN, HIDDEN)),
        "R": rng.normal(0, 0.5, (4 * HIDDEN, HIDDEN)),
        "B": rng.normal(0, 0.1, 4 * HIDDEN),
        "speech_weight": rng.normal(0, 1.0, (HIDDEN, 1)),
    }
    frame, state = parameter("input", [1, FRAME]), parameter("state", [2, 1, HIDDEN])
    rate = parameter("sr", [], np.int64)
    gain = ops.divide(ops.convert(rate, "f32", name="rate"), constant("usual_rate", 16000.0), name="gain")
    loud = ops.multiply(frame, gain, name="loud")
    features = ops.relu(matmul(loud, "frame_weight", weights), name="features")
    axis = constant("state_axis", 0, np.int64)
    before = [ops.gather(state, constant(f"place_{name}", k, np.int64), axis, name=name) for k, name in enumerate("hc")]
    cell = ops.lstm_cell(features, *before, *(constant(name, weights[name]) for name in "WRB"), HIDDEN, name="cell")
    after = [ops.unsqueeze(cell.output(k), axis, name=f"{name}_next") for k, name in enumerate("hc")]
    probability = ops.sigmoid(matmul(cell.output(0), "speech_weight", weights), name="probability")
    outputs: dict[str, Value] = {"output": probability, "stateN": ops.concat(after, 0, name="state_next")}
    built = model("vad", [frame, state, rate], outputs)
    frames = np.random.default_rng(21).normal(0, 1, (FRAMES, 1, FRAME)).astype(np.float32)
    frames[20:40] *= 3
    formula = np.array(vad_formula(frames, weights), np.float32)
    first = np.zeros((2, 1, HIDDEN), np.float32)
    same = {"sr": np.array(16000, np.int64)}
    return Stream(built, {"input": frames}, same, {"stateN": ("state", first)}, {"output": formula})


def matmul(value: Value, name: str, weights: dict[str, Array]) -> ov.Node:
    """A product with weights, named after them."""
    return ops.matmul(value, constant(name, weights[name]), False, False, name=name.removesuffix("_weight"))


def vad_formula(frames: Array, weights: dict[str, Array]) -> list[Array]:
    """The same in f64, gate by gate: forget, input, cell, output."""
    h = c = np.zeros((1, HIDDEN))
    found = []
    for frame in frames.astype(np.float64):
        features = np.maximum(frame @ weights["frame_weight"], 0)
        f, i, g, o = np.split(features @ weights["W"].T + h @ weights["R"].T + weights["B"], 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        found.append(sigmoid(h @ weights["speech_weight"]))
    return found


def vad_stateful(original: Stream) -> Stream:
    """The same with the state in a variable."""
    built = original.model.clone()
    apply_make_stateful_transformation(built, {"state": "stateN"})
    built.set_friendly_name("vad_stateful")
    return Stream(built, original.calls, original.same, {}, original.formula)


def kv_cache() -> Stream:
    """One head of attention: a call gets a token and the keys and values of all tokens before it."""
    rng = np.random.default_rng(22)
    weights = {f"{name}_weight": rng.normal(0, 0.5, (WIDTH, WIDTH)) for name in ("query", "key", "value")}
    token = parameter("token", [1, 1, WIDTH])
    past = {name: parameter(f"past_{name}", [1, -1, WIDTH]) for name in ("key", "value")}
    query, key, value = (matmul(token, f"{name}_weight", weights) for name in ("query", "key", "value"))
    keys = ops.concat([past["key"], key], 1, name="keys")
    values = ops.concat([past["value"], value], 1, name="values")
    scores = ops.matmul(query, keys, False, True, name="scores")
    scaled = ops.multiply(scores, constant("scale", 1 / np.sqrt(WIDTH)), name="scaled")
    mixed = ops.matmul(ops.softmax(scaled, -1, name="attention"), values, False, False, name="mixed")
    outputs: dict[str, Value] = {"mixed": mixed, "present_key": keys, "present_value": values}
    built = model("kv_cache", [token, *past.values()], outputs)
    tokens = np.random.default_rng(23).normal(0, 1, (TOKENS, 1, 1, WIDTH)).astype(np.float32)
    x = tokens[:, 0, 0].astype(np.float64)
    q, k, v = (x @ weights[f"{name}_weight"] for name in ("query", "key", "value"))
    score = np.where(np.tri(TOKENS) > 0, q @ k.T / np.sqrt(WIDTH), -np.inf)
    share = np.exp(score - score.max(axis=1, keepdims=True))
    formula = (share / share.sum(axis=1, keepdims=True) @ v).astype(np.float32)[:, None, None]
    nothing = np.zeros((1, 0, WIDTH), np.float32)
    carried = {f"present_{name}": (f"past_{name}", nothing) for name in ("key", "value")}
    return Stream(built, {"token": tokens}, {}, carried, {"mixed": formula})


def gru() -> Stream:
    """A GRU over a sequence, in one call."""
    rng = np.random.default_rng(24)
    weights = {name: rng.normal(0, 0.5, (3 * UNITS, size)) for name, size in (("W", FEATURES), ("R", UNITS))}
    sequence = parameter("sequence", [1, -1, FEATURES])
    step, h = parameter("step", [1, 1, FEATURES]), parameter("h", [1, UNITS])
    flat = ops.squeeze(step, constant("time_axis", 1, np.int64), name="step_flat")
    cell = ops.gru_cell(
        flat, h, *(constant(name, weights[name]) for name in "WR"), constant("B", np.zeros(3 * UNITS)), UNITS
    )
    cell.set_friendly_name("h_next")
    piece = ops.unsqueeze(cell, constant("piece_axis", 1, np.int64), name="piece")
    body = Body(carried=[(h, constant("h_first", np.zeros((1, UNITS))), cell)], sliced=[(step, sequence)])
    body.concatenated = [piece]
    built = model("gru", [sequence], {"states": tensor_iterator("gru_loop", body, axis=1)[0]})
    steps = np.random.default_rng(25).normal(0, 1, (1, 1, STEPS, FEATURES)).astype(np.float32)
    state, states = np.zeros((1, UNITS)), []
    for x in steps[0, 0].astype(np.float64):
        of_x, of_h = x[None] @ weights["W"].T, state @ weights["R"].T
        z, r = (sigmoid(of_x[:, k : k + UNITS] + of_h[:, k : k + UNITS]) for k in (0, UNITS))
        new = np.tanh(of_x[:, 2 * UNITS :] + (r * state) @ weights["R"][2 * UNITS :].T)
        state = (1 - z) * new + z * state
        states.append(state)
    return Stream(built, {"sequence": steps}, {}, {}, {"states": np.array(states, np.float32)[None].swapaxes(1, 2)})


def gru_stateful(original: Stream) -> Stream:
    """The same for one time step in a call, with the state in a variable."""
    built = original.model.clone()
    built.reshape([1, 1, FEATURES])
    apply_low_latency_transformation(built)
    built.set_friendly_name("gru_stateful")
    steps = original.calls["sequence"][0].swapaxes(0, 1)[:, None]
    return Stream(built, {"sequence": steps}, {}, {}, {"states": original.formula["states"][0].swapaxes(0, 1)[:, None]})
