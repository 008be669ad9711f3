"""`jd.jit`: captured once per signature, nothing of the arguments is baked in."""

from __future__ import annotations

import functools
import inspect
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest

import jitdialects as jd
import jitdialects.numpy as jnp

RNG = np.random.default_rng(2)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def opcodes(f: object) -> list[str]:
    """The opcodes of the captured program without the destroys."""
    blocks = f.program.functions[0].blocks
    return [i.opcode for b in blocks for i in b.instructions if i.opcode != "destroy"]


def signatures(f: object) -> int:
    return len(f._captures)


# ---- capture -----------------------------------------------------------------------------------


def test_mlp_layer() -> None:
    @jd.jit
    def layer(x, w, b):
        return jnp.relu(x @ w + b)

    x, w, b = floats(5, 7), floats(7, 3), floats(3)
    got = layer(x, w, b)
    assert type(got) is np.ndarray and got.dtype == np.float32
    np.testing.assert_allclose(got, np.maximum(x @ w + b, 0), rtol=1e-5, atol=1e-6)
    assert opcodes(layer) == ["const", "matmul", "add", "maximum", "return"]


def test_one_capture_per_dtype_rank_and_kind() -> None:
    calls = []

    @jd.jit
    def f(x):
        calls.append(1)
        return x + x

    for argument in (floats(3), floats(9), floats(0), floats(2, 3)[:, 0]):
        np.testing.assert_array_equal(f(argument), argument + argument)
    assert len(calls) == 1
    for argument in (floats(2, 2), np.arange(3), np.float32(2), np.array(1), 2.0, 3, True):
        np.testing.assert_array_equal(f(argument), np.asarray(argument) + argument)
    assert len(calls) == 8  # np.float32(2) and np.array(1) have rank 0, the scalars are weak
    f(5), f(6.5), f(np.array(9))
    assert len(calls) == 8


def test_twenty_pairs_of_bounds_are_one_capture() -> None:  # pytorch/pytorch#114293
    @jd.jit
    def window(x, start, end):
        return x[start:end] * 2 + start

    x = floats(50)
    for start in range(20):
        end = start + 5 + start % 3
        np.testing.assert_array_equal(window(x, start, end), x[start:end] * 2 + np.float32(start))
    assert signatures(window) == 1


def test_arrays_in_lists_are_arguments() -> None:  # tinygrad/tinygrad#10850
    @jd.jit
    def f(ts):
        return ts[0] + 1

    assert [int(f([np.int64(t)])) for t in range(5)] == [1, 2, 3, 4, 5]
    assert signatures(f) == 1


def test_constant_filled_arguments_are_arguments() -> None:  # tinygrad/tinygrad#14044
    @jd.jit
    def f(x):
        return x * 2

    for value in (2, 3):
        assert f(np.full(3, value, np.float32)).tolist() == [2 * value] * 3
        assert np.asarray(f(jnp.full((3,), float(value)))).tolist() == [2 * value] * 3


class Layer(NamedTuple):
    w: object
    b: object


def test_nested_arguments_and_results_keep_their_structure() -> None:
    @jd.jit
    def f(x, layers, *, scale, options=None):
        assert options is None
        for layer in layers:
            x = x @ layer.w + layer.b
        return {"out": x * scale["k"], "rest": [Layer(x, None), ("text", 3, x.ndim)]}

    layers = (Layer(np.eye(3, dtype=np.float32), floats(3)), Layer(floats(3, 2), floats(2)))
    x = floats(4, 3)
    got = f(x, layers, scale={"k": 2.0})
    assert list(got) == ["out", "rest"] and type(got["rest"][0]) is Layer
    assert got["rest"][0].b is None and got["rest"][1] == ("text", 3, 2)
    np.testing.assert_array_equal(got["out"], got["rest"][0].w * np.float32(2))
    f(x[:2], layers, scale={"k": 2.5})
    assert signatures(f) == 1


def test_keyword_arguments_in_any_order_and_defaults() -> None:
    @jd.jit
    def f(x, y=2.0, *, z=3.0):
        return x * y - z

    x = floats(3)
    np.testing.assert_array_equal(f(x), x * np.float32(2) - np.float32(3))
    np.testing.assert_array_equal(f(x, z=1.0, y=4.0), f(x, y=4.0, z=1.0))
    assert signatures(f) == 2
    assert f.__name__ == "f" and list(inspect.signature(f.__wrapped__).parameters) == list("xyz")


def test_arrays_give_arrays() -> None:
    f = jd.jit(lambda x, y: x + y)
    got = f(jnp.asarray([1.0, 2.0]) * 2, floats(2))
    assert isinstance(got, jd.Array)
    assert type(f(floats(2), floats(2))) is np.ndarray


def test_closures_are_copied_at_capture() -> None:
    table = np.ones(3, np.float32)
    lazy = jnp.asarray(table) * 2

    @jd.jit
    def f(x):
        return x + table + lazy

    x = floats(3)
    want = x + table + 2 * table
    np.testing.assert_array_equal(f(x), want)
    table[:] = 100
    np.testing.assert_array_equal(f(x), want)


def test_results_never_alias_arguments_or_each_other() -> None:
    @jd.jit
    def f(x):
        return x, x, x.reshape(-1), x[:2], x.T

    x = floats(4)
    before = x.copy()
    results = f(x)
    for result in results:
        assert not np.shares_memory(result, x)
        result[...] = 0
        np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(f(x)[0], before)


def test_item_assignment_inside_never_writes_the_caller() -> None:
    @jd.jit
    def f(x, i):
        x[i] = 5.0
        return x.at[0].set(7.0), x

    x = np.zeros(4, np.float32)
    first, second = f(x, 2)
    assert x.tolist() == [0, 0, 0, 0]
    assert first.tolist() == [7, 0, 5, 0] and second.tolist() == [0, 0, 5, 0]


def test_shapes_are_values_while_tracing() -> None:
    @jd.jit
    def f(x):
        rows, columns = x.shape
        assert isinstance(rows, jd.Array) and x.ndim == 2
        mean = x.sum() / rows  # sizes are Python integers, as in NumPy
        flat = x.reshape(rows * columns)
        grid = jnp.broadcast_to(jnp.zeros(()), (columns, rows))
        return (
            mean,
            flat[: rows + 1],
            grid,
            x.size,
            x[rows - 1],
            x.sum(axis=-1, keepdims=True).shape,
        )

    for shape in ((3, 4), (2, 5), (1, 1)):
        x = floats(*shape)
        mean, head, grid, size, last, (kept, one) = f(x)
        np.testing.assert_allclose(mean, x.sum() / np.float32(shape[0]), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(head, x.reshape(-1)[: shape[0] + 1])
        assert grid.shape == shape[::-1] and size == x.size and (kept, one) == (shape[0], 1)
        np.testing.assert_array_equal(last, x[-1])
    assert signatures(f) == 1


def test_unused_sizes_leave_no_instruction() -> None:
    f = jd.jit(lambda x: x.reshape(x.shape[0], -1))
    f(floats(2, 3, 4))
    assert opcodes(f) == ["size", "reshape", "return"]


def test_jit_inside_jit_becomes_part_of_it() -> None:
    inner = jd.jit(lambda x: x * 2)
    outer = jd.jit(lambda x: inner(x) + 1)
    np.testing.assert_array_equal(outer(np.ones(2, np.float32)), [3, 3])
    assert opcodes(outer) == ["const", "const", "multiply", "add", "return"]
    assert signatures(inner) == 0


def test_locations_are_the_users_lines() -> None:
    @jd.jit
    def f(x):
        y = jnp.softmax(x)
        return y + 1

    f(floats(2, 3))
    line = inspect.getsourcelines(f.__wrapped__)[1]
    places = {
        (i.location.file, i.location.line)
        for i in f.program.functions[0].blocks[0].instructions
        if i.location is not None
    }
    assert places == {(__file__, line + 2), (__file__, line + 3)}


def test_numpy_is_left_alone_in_a_capture() -> None:
    @jd.jit
    def f(x):
        return x + np.arange(3, dtype=np.float32) * 2, np.ones(2, np.float32)

    got, constant = f(np.zeros(3, np.float32))
    assert got.tolist() == [0, 2, 4] and constant.tolist() == [1, 1]
    constant[:] = 9
    assert f(np.zeros(3, np.float32))[1].tolist() == [1, 1]


def test_nothing_returned() -> None:
    assert jd.jit(lambda x: None)(1.0) is None
    assert jd.jit(lambda x: ())(1.0) == ()


def test_threads_share_a_function() -> None:
    f = jd.jit(lambda x: x * 2 + 1)
    wrong = []

    def work(k: int) -> None:
        for n in range(1, 20):
            x = np.full(n, k, np.float32)
            if not (f(x) == 2 * k + 1).all():
                wrong.append((k, n))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))  # raises what they raise
    assert not wrong and signatures(f) == 1


# ---- errors ------------------------------------------------------------------------------------


def test_a_choice_on_data_names_the_line_and_the_ways_on() -> None:
    @jd.jit
    def f(x):
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(jd.TraceError) as caught:
        f(floats(3))
    line = inspect.getsourcelines(f.__wrapped__)[1] + 2
    text = str(caught.value)
    assert text.startswith(f"{__file__}:{line}:") and "f: bool()" in text
    assert "jd.while_loop" in text and "jnp.where" in text and "lazy arrays" in text
    assert "\n" not in text
    np.testing.assert_array_equal(jnp.asarray([1.0]) + 1, [2])  # the trace is over


WANTS = {
    "bool": lambda x: bool(x[0]),
    "while": lambda x: [x for _ in iter(lambda: bool(x[0] > 0), False)],
    "int": lambda x: int(x[0]),
    "float": lambda x: float(x[0]),
    "item": lambda x: x[0].item(),
    "numpy": lambda x: np.asarray(x),
    "range": lambda x: list(range(x.shape[0])),
    "iterate": lambda x: list(x),
    "len": lambda x: len(x),
}


@pytest.mark.parametrize("want", WANTS)
def test_whatever_needs_elements_is_refused_while_tracing(want: str) -> None:
    with pytest.raises(jd.TraceError, match="needs the elements"):
        jd.jit(WANTS[want])(floats(3))


def test_a_traced_array_prints_without_running() -> None:
    seen = []
    jd.jit(lambda x: seen.append((str(x), repr(x))))(floats(3))
    assert seen[0][1].startswith("Array(<traced") and "float32" in seen[0][1]


def test_leaked_arrays_are_refused() -> None:
    kept = []
    jd.jit(lambda x: kept.append(x))(floats(3))
    with pytest.raises(jd.TraceError, match="capture"):
        kept[0] + 1
    with pytest.raises(jd.TraceError, match="capture"):
        jd.jit(lambda x: x + kept[0])(floats(3))


MISTAKES = {
    "too few": (lambda: jd.jit(lambda x, y: x)(1.0), jd.ArgumentError),
    "unknown": (lambda: jd.jit(lambda x: x)(1.0, z=2.0), jd.ArgumentError),
    "text": (lambda: jd.jit(lambda x: x)("text"), jd.ArgumentError),
    "float16": (lambda: jd.jit(lambda x: x)(np.zeros(3, np.float16)), jd.DTypeError),
    "huge": (lambda: jd.jit(lambda x: x)(2**70), jd.DTypeError),
    "swapped": (lambda: jd.jit(lambda x: x)(np.zeros(3, ">f4")), jd.DTypeError),
    "static shapes": (lambda: jd.jit(lambda x: x + np.ones(3, np.float16) + 1)(1.0), jd.DTypeError),
    "rank": (lambda: jd.jit(lambda x: x[0, 0])(floats(3)), jd.OutOfBoundsError),
    "constants": (
        lambda: jd.jit(lambda: jnp.zeros((3,)) + jnp.zeros((4,)))(),
        jd.ShapeError,
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence_and_work_goes_on(name: str) -> None:
    mistake, error = MISTAKES[name]
    with pytest.raises(error) as caught:
        mistake()
    text = str(caught.value)
    assert isinstance(caught.value, jd.Error)
    assert "\n" not in text and not text.endswith(".") and len(text) < 300
    assert jd.jit(lambda x: x + 1)(np.float32(1)) == 2


def test_a_failing_call_leaves_the_function_usable() -> None:
    f = jd.jit(lambda x, y: x + y)
    with pytest.raises(jd.ShapeError, match="do not broadcast") as caught:
        f(floats(3), floats(4))
    assert str(caught.value).startswith(__file__)
    assert f(floats(3), floats(3)).shape == (3,)
    g = jd.jit(lambda x, i: x[i])
    with pytest.raises(jd.OutOfBoundsError):
        g(floats(3), 3)
    x = floats(3)
    assert g(x, -1) == x[-1] and signatures(g) == 1


def test_functions_in_c_without_a_signature() -> None:
    x = np.ones(3)
    assert (jd.jit(dict)(a=x, b=2.0)["a"] == x).all()
    with pytest.raises(jd.TraceError, match="max: int.. needs the elements of an array"):
        jd.jit(max)(x)
    with pytest.raises(jd.DTypeError, match="dict: dtype float16 is not supported"):
        jd.jit(dict)(a=x.astype(np.float16))


@pytest.mark.parametrize(
    "option", [{"numerics": "fast"}, {"shapes": "some"}, {"target": "cuda"}], ids=str
)
def test_options_are_checked(option: dict[str, str]) -> None:
    with pytest.raises(jd.ConfigError, match="is not supported; use one of"):
        jd.jit(lambda x: x, **option)


def test_a_closure_may_be_returned() -> None:
    lazy = jnp.asarray([1.0, 2.0]) + 1
    assert jd.jit(lambda x: (x, lazy))(1.0)[1].tolist() == [2, 3]


def test_only_functions() -> None:
    with pytest.raises(jd.ArgumentError, match="takes a function, got int"):
        jd.jit(3)


class Model:
    """An object with weights and a jitted method."""

    def __init__(self, scale):
        self.scale = scale

    @jd.jit
    def forward(self, x, shift=0.0):
        return x * self.scale + shift

    @classmethod
    @jd.jit
    def named(cls, x):
        return x + len(cls.__name__)

    @staticmethod
    @jd.jit
    def double(x):
        return x + x

    @property
    @jd.jit
    def total(self):
        return jnp.sum(self.scale)


def test_methods_are_captured_per_object() -> None:
    x = floats(3)
    two, three = Model(2.0), Model(3.0)
    for _ in range(3):
        np.testing.assert_array_equal(two.forward(x), x * np.float32(2))
        np.testing.assert_array_equal(three.forward(x, shift=1.0), x * np.float32(3) + 1)
        np.testing.assert_array_equal(Model.forward(two, x), x * np.float32(2))
    assert Model.double(x).tolist() == two.double(x).tolist() == (x + x).tolist()
    np.testing.assert_array_equal(two.named(x), x + np.float32(5))
    assert Model(np.ones(4, np.float32)).total == 4
    assert two.forward.__self__ is two and "@main" in jd.explain(Model.forward)
    assert "multiply" in Model.forward.lower(two, x) and Model.forward.program is not None


def test_what_a_method_reads_of_its_object_is_read_at_capture() -> None:
    model = Model(2.0)
    assert model.forward(np.float32(1)) == 2
    model.scale = 5.0
    assert model.forward(np.float32(1)) == 2
    assert Model(5.0).forward(np.float32(1)) == 5


def test_captures_of_a_method_go_with_the_object() -> None:
    bound = Model.forward._bound
    before = len(bound)
    model = Model(2.0)
    model.forward(floats(3))
    assert len(bound) == before + 1
    gone = weakref.ref(model)
    method = model.forward  # holds the object, as any bound method does
    del model
    assert gone() is not None and method(np.float32(3)) == 6
    del method
    assert gone() is None and len(bound) == before


def test_a_method_of_a_class_with_its_own_equality_goes_by_identity() -> None:
    class Same:
        __hash__ = None

        def __init__(self, k):
            self.k = k

        def __eq__(self, other):
            return True

    Same.f = jd.jit(lambda self, x: x * self.k)  # not defined in the class
    one, two = Same(1.0), Same(2.0)
    assert one.f(3.0) == 3 and two.f(3.0) == 6 and one.f(3.0) == 3


def test_a_named_tuple_as_self_is_an_argument() -> None:
    class Scaled(NamedTuple):
        scale: object
        shift: object

        @jd.jit
        def apply(self, x):
            return x * self.scale + self.shift

    x = floats(3)
    for k in range(1, 4):
        scaled = Scaled(np.full(3, k, np.float32), np.float32(k))
        np.testing.assert_array_equal(scaled.apply(x), x * np.float32(k) + np.float32(k))
    assert signatures(Scaled.apply) == 1


def test_a_jitted_method_inside_a_capture_becomes_part_of_it() -> None:
    model = Model(2.0)
    outer = jd.jit(lambda x: model.forward(x) + 1)
    assert outer(np.float32(3)) == 7 and opcodes(outer).count("multiply") == 1


def test_an_object_without_weak_references_is_refused() -> None:
    class Slots:
        __slots__ = ()

        @jd.jit
        def f(self, x):
            return x

    with pytest.raises(jd.ArgumentError, match="__weakref__"):
        Slots().f(1.0)
    with pytest.raises(jd.ArgumentError, match="takes arrays and numbers"):
        jd.jit(lambda x: x)(Slots())


def test_arguments_by_name_are_those_by_position() -> None:
    @jd.jit
    def f(x, y, z=1.0, *, scale=2.0):
        return (x - y) * scale + z

    x, y = floats(3), floats(3)
    want = (x - y) * np.float32(2) + np.float32(1)
    for got in (f(x, y), f(x, y=y), f(y=y, x=x), f(x=x, y=y)):
        np.testing.assert_array_equal(got, want)
    assert signatures(f) == 1
    np.testing.assert_array_equal(f(x, scale=2.0, y=y), f(y=y, scale=2.0, x=x))
    np.testing.assert_array_equal(f(x, y, scale=2.0, z=1.0), want)
    assert signatures(f) == 3
    g = jd.jit(lambda a, /, b, *rest, **more: a + b + sum(rest) + sum(more.values()))
    assert g(1, b=2) == 3 and g(1, 2, 3, c=4) == 10 and g(1, d=4, b=2, c=3) == 10


KEYWORD_MISTAKES = {
    "unknown": lambda f: f(1.0, 2.0, w=3.0),
    "twice": lambda f: f(1.0, 2.0, x=3.0),
    "too many": lambda f: f(1.0, 2.0, 3.0),
    "missing": lambda f: f(y=1.0),
    "by position only": lambda f: jd.jit(lambda a, /: a)(a=1.0),
}


@pytest.mark.parametrize("name", KEYWORD_MISTAKES)
def test_a_wrong_keyword_is_one_sentence(name: str) -> None:
    f = jd.jit(lambda x, y: x + y)
    for _ in range(2):
        with pytest.raises(jd.ArgumentError, match="check the call"):
            KEYWORD_MISTAKES[name](f)
    assert f(1.0, y=2.0) == 3


def test_partial_functions() -> None:
    f = jd.jit(functools.partial(lambda w, x, b: x * w + b, np.float32(2)))
    assert f(3.0, b=1.0) == 7 and f(3.0, 1.0) == 7 and signatures(f) == 1
    assert functools.partial(f, 3.0)(b=1.0) == 7


def test_program_of_what_was_never_called() -> None:
    with pytest.raises(jd.ArgumentError, match="call it once"):
        _ = jd.jit(lambda x: x).program


def test_options_as_a_decorator() -> None:
    @jd.jit(shapes="exact")
    def f(x):
        """Doc."""
        return x * 2

    assert f(3) == 6 and f.__doc__ == "Doc." and "1 signature" in repr(f)
    assert jd.Program.from_text(f.program.to_text()) == f.program
