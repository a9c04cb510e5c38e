"""A graph is compared with its manifest before a session; its weights stay in the pack; nothing is unpickled."""

from __future__ import annotations

import ast
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import pipeline
import workers
from pipeline.errors import PackError
from pipeline.packs.embedded.authoring.writer import Graph
from pipeline.packs.graph_check import check_graph
from pipeline.packs.manifest import FileEntry, Manifest, ModelSpec, Tensor
from pipeline.packs.onnx_file import read_onnx
from pipeline.packs.pack import Pack
from pipeline.packs.section import Section
from pipeline.packs.store import open_pack, shipped_packs

SPEC = ModelSpec(
    "models/double.onnx", {"value": Tensor("x", (1, 3), "float32")}, {"result": Tensor("y", (1, 3), "float32")}, {}
)


def pack_in(folder: Path) -> Pack:
    """A pack of whatever files lie in a folder."""
    files = {
        str(path.relative_to(folder)): FileEntry(path.lstat().st_size, "0" * 64, "MIT", "test")
        for path in folder.rglob("*")
        if not path.is_dir()
    }
    return Pack(folder, Manifest("tiny", "1", "MIT", True, files, {"double": SPEC}, {}, Section({}, "tiny")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """x doubled, with the factor as weights of the graph."""
    (tmp_path / "pack" / "models").mkdir(parents=True)
    graph = Graph("double")
    graph.output("y", graph.input("x", [1, 3]) * np.full((1, 3), 2, np.float32), [1, 3])
    graph.save(tmp_path / "pack" / SPEC.file)
    return tmp_path / "pack"


def keep_weights_in(folder: Path, location: str, offset: int = 0, length: int = 12) -> None:
    """Have the graph look for its factor in another file."""
    model = onnx.load(folder / SPEC.file)
    (tensor,) = [one for one in model.graph.initializer if one.dims == [1, 3]]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    (folder / SPEC.file).write_bytes(model.SerializeToString())


def test_every_shipped_graph_is_what_its_manifest_says() -> None:
    for name in shipped_packs():
        pack = open_pack(name)
        for spec in pack.manifest.models.values():
            assert pack.model_path(spec).is_file()


def test_what_is_read_is_what_onnx_reads() -> None:
    """Names, element types and shapes of every shipped graph."""
    for path in Path(pipeline.__file__).parent.rglob("packs/*/*.onnx"):
        graph, found = onnx.load(path).graph, read_onnx(path)
        defaults = {tensor.name for tensor in graph.initializer}
        for values, read in ((graph.input, found.inputs), (graph.output, found.outputs)):
            assert {
                value.name: (
                    value.type.tensor_type.elem_type,
                    tuple(
                        dim.dim_value if dim.HasField("dim_value") else None for dim in value.type.tensor_type.shape.dim
                    ),
                )
                for value in values
                if value.name not in defaults
            } == {name: (declared.element, declared.shape) for name, declared in read.items()}
        assert found.external == []


@pytest.mark.parametrize(
    ("inputs", "outputs", "said"),
    [
        ({"value": Tensor("z", (1, 3), "float32")}, {}, "no input 'z'"),
        ({"value": Tensor("x", (1, 4), "float32")}, {}, r"'x' has shape \[1, 3\], the manifest says \[1, 4\]"),
        ({"value": Tensor("x", (3,), "float32")}, {}, "has shape"),
        ({"value": Tensor("x", (1, 3), "float16")}, {}, "element type 1, the manifest says float16"),
        ({"value": Tensor("x", (None, 3), "float32")}, {"result": Tensor("q", (1, 3), "float32")}, "no output 'q'"),
        ({}, {}, "needs the input 'x'"),
    ],
)
def test_a_graph_that_differs_is_refused(folder: Path, inputs: Any, outputs: Any, said: str) -> None:
    with pytest.raises(PackError, match=said):
        check_graph(pack_in(folder), SPEC.file, ModelSpec(SPEC.file, inputs, outputs, {}))


def test_sides_that_either_leaves_free_fit(folder: Path) -> None:
    free = ModelSpec(SPEC.file, {"value": Tensor("x", (None, 3), "float32")}, SPEC.outputs, {})
    assert check_graph(pack_in(folder), SPEC.file, free) == folder / SPEC.file


def test_weights_beside_the_graph_are_fine(folder: Path) -> None:
    keep_weights_in(folder, "double.data", offset=4)
    (folder / "models" / "double.data").write_bytes(bytes(16))
    assert pack_in(folder).model_path(SPEC) == folder / SPEC.file
    (folder / "models" / "double.data").write_bytes(bytes(15))
    with pytest.raises(PackError, match="are not all in"):
        pack_in(folder).model_path(SPEC)


@pytest.mark.parametrize(
    "location", ["/etc/passwd", "../../secret", "../models/../../secret", "C:/secret", "..\\..\\secret", ""]
)
def test_weights_outside_of_the_pack_are_refused(folder: Path, location: str) -> None:
    (folder.parent / "secret").write_bytes(bytes(12))
    keep_weights_in(folder, location)
    with pytest.raises(PackError, match="outside of the pack"):
        pack_in(folder).model_path(SPEC)


def test_a_link_does_not_lead_out_of_the_pack(folder: Path) -> None:
    (folder.parent / "secret").write_bytes(bytes(12))
    os.symlink(folder.parent / "secret", folder / "models" / "double.data")
    keep_weights_in(folder, "double.data")
    with pytest.raises(PackError, match="outside of the pack"):
        pack_in(folder).model_path(SPEC)


def test_weights_without_a_hash_are_refused(folder: Path) -> None:
    keep_weights_in(folder, "double.data")
    pack = pack_in(folder)
    (folder / "models" / "double.data").write_bytes(bytes(12))
    with pytest.raises(PackError, match="no entry with size and hash"):
        pack.model_path(SPEC)


def test_weights_are_found_wherever_a_graph_may_name_them(tmp_path: Path) -> None:
    """In a constant's attribute, in a subgraph, in a sparse tensor, in a function."""

    def tensor(name: str) -> TensorProto:
        made = numpy_helper.from_array(np.zeros(2, np.float32), name)
        made.ClearField("raw_data")
        made.data_location = TensorProto.EXTERNAL
        entry = made.external_data.add()
        entry.key, entry.value = "location", f"/{name}"
        return made

    def constant(name: str) -> onnx.NodeProto:
        return helper.make_node("Constant", [], [name], value=tensor(name))

    branch = helper.make_graph([constant("branch")], "then", [], [])
    sparse = onnx.SparseTensorProto(values=tensor("sparse"), indices=tensor("indices"), dims=[4])
    graph = helper.make_graph(
        [constant("node"), helper.make_node("If", ["c"], ["r"], then_branch=branch, else_branch=branch)], "g", [], [],
        initializer=[tensor("initialiser")], sparse_initializer=[sparse],
    )  # fmt: skip
    function = helper.make_function("d", "f", [], ["function"], [constant("function")], [])
    path = tmp_path / "all.onnx"
    path.write_bytes(helper.make_model(graph, functions=[function]).SerializeToString())
    names = [external.tensor for external in read_onnx(path).external]
    assert sorted(names) == ["branch", "branch", "function", "indices", "initialiser", "node", "sparse"]


@pytest.mark.parametrize("cut", [0, 1, 50, -1])
def test_a_damaged_graph_is_refused(folder: Path, cut: int) -> None:
    path = folder / SPEC.file
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(PackError, match="not an ONNX graph"):
        read_onnx(path)


class Trap:
    """Unpickling it makes a folder."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


def test_a_pickle_is_refused_and_not_opened(folder: Path, tmp_path: Path) -> None:
    mark = tmp_path / "opened"
    for name in (SPEC.file, "manifest.json"):
        (folder / name).write_bytes(pickle.dumps(Trap(mark)))
    with pytest.raises(PackError, match="not an ONNX graph"):
        pack_in(folder).model_path(SPEC)
    with pytest.raises(PackError, match="not JSON"):
        Pack.open(folder)
    assert not mark.exists()


def test_no_code_of_ours_unpickles() -> None:
    """No import of what does, no numpy array of objects; torch, whose `load` does, only to train, and without it."""
    modules = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "torch"}
    for package in (pipeline, workers):
        for path in Path(package.__file__ or "").parent.rglob("*.py"):
            unsafe = modules - {"torch"} if path.parent.name == "training" else modules
            text = path.read_text("utf-8")
            if not any(word in text for word in (*modules, "allow_pickle")):
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Import):
                    assert unsafe.isdisjoint(alias.name.partition(".")[0] for alias in node.names), path
                elif isinstance(node, ast.ImportFrom) and node.level == 0:
                    assert (node.module or "").partition(".")[0] not in unsafe, path
                elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
                    assert node.attr not in ("load", "hub", "jit"), path
                elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                    assert isinstance(node.value, ast.Constant), path
                    assert node.value.value is False, path
