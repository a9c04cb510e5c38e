"""A whole build: once, however many ask for it at once, and visible only when it is whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from ...errors import OutputError, ProofError
from ..built import BuildName, builds, builds_folder
from ..locks import locked
from ..pack import Pack
from ..places import MANIFEST
from .generators import Place, companions, generators
from .options import BuildOptions
from .recipes import Recipe
from .samples import collect
from .writing import Writer

Say = Callable[[str], None]


def build(
    pack: Pack,
    options: BuildOptions,
    *,
    generator: Pack | None = None,
    say: Say = lambda line: None,
) -> Pack:
    """Build a pack for a machine, unless that is done already.

    Generators are rewritten by the preset; any other model where that is measured to be faster. What does not change
    is linked. What the pack has not and the generators' pack has, comes along. Builds of the same preset that are out
    of date go.

    Args:
        pack: the source. generator: a pack whose models take the places of its generators.
        say: gets a line a step.

    Raises:
        ProofError: a bound is broken; the evidence stays, its place is in the message.
        GraphError: a generator cannot be rewritten. PackError: no generator that fits, a file that is damaged.
        OutputError: the folder cannot be written.
    """
    places = generators(pack, generator)
    for source in (pack, generator):
        if source is not None:
            source.verify()
    name = BuildName(pack.name, options.preset, generator.name if generator else None)
    home = builds_folder(pack)
    key = Writer(name, pack, generator, options, home).key
    folder, making = home / f"{name.stem}-{key}", home / f".{name.stem}-{key}.making"
    with locked(home / f".{name.stem}-{key}.lock", lambda: say(f"{folder} is being built by another process")):
        if (folder / MANIFEST).is_file():
            say(f"{folder} is there already")
            return Pack.open(folder)
        shutil.rmtree(making, ignore_errors=True)  # of a build that was killed: nobody else is at it
        making.mkdir()
        try:
            writer = Writer(name, pack, generator, options, making)
            _make(writer, places, options, say)
            for model in companions(pack, generator):
                writer.bring(model)
                say(f"{model}: comes along with the generators")
            writer.finish()
            making.rename(folder)
        except ProofError as error:
            raise _refused(making, folder, error) from error
        except OSError as error:
            raise OutputError(f"{making} cannot be written ({error.strerror}); make room there") from error
        finally:
            shutil.rmtree(making, ignore_errors=True)
        _prune(pack, folder, name)
    return Pack.open(folder)


def _make(writer: Writer, places: Mapping[str, Place], options: BuildOptions, say: Say) -> None:
    recipe = Recipe(options, lambda: collect(writer.pack, options.portraits, options.threads))
    for place in places.values():
        say(f"{place.name}: {place.spec.file} of {place.pack.name}")
        output = _output(writer.folder, place, options)
        source, steps = place.pack.path(place.spec.file), []
        if place.halved:
            half = output.with_name(f"{output.stem}.half.onnx")
            steps = recipe.half_size(source, half)
            source = half
        made = recipe.generator(source, place.spec, output)
        made.steps[:0] = steps
        writer.replace(place, made)
        for line in made.steps:
            say(f"  {line}")
    for model in writer.pack.manifest.models:
        if model in places:
            continue
        place = Place(model, writer.pack, model)
        say(f"{model}: {place.spec.file}")
        other = recipe.other(place.pack.path(place.spec.file), _output(writer.folder, place, options))
        if isinstance(other, str):
            writer.stay(model, other)
            say(f"  stays: {other}")
        else:
            writer.replace(place, other)
            say(f"  {other.steps[-1]}")


def _output(folder: Path, place: Place, options: BuildOptions) -> Path:
    """`<the source's name>.<preset>.onnx`; generators that come from one file are told apart."""
    file = PurePosixPath(place.spec.file)
    stem = f"{file.stem}.{place.name}" if place.name != place.model else file.stem
    path = folder / file.with_name(f"{stem}.{options.preset}.onnx")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _refused(making: Path, folder: Path, error: ProofError) -> ProofError:
    """Keeps the evidence of a build that is refused, and says where."""
    place = folder.with_name(f".{folder.name}.refused")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for path in making.rglob("*.evidence.*"):
        shutil.copy(path, place)
    return ProofError(f"{str(error).split(' (see ')[0]} (see the evidence in {place})")


def _prune(pack: Pack, made: Path, name: BuildName) -> None:
    """Builds of that name that are out of date go: nothing can open them any more."""
    for build in builds(pack):
        same = (build.name.preset, build.name.generator) == (name.preset, name.generator)
        if same and build.folder != made and build.stale(lambda other: pack if other == pack.name else None):
            shutil.rmtree(build.folder, ignore_errors=True)
