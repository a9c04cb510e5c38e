"""One picture by Blender's Cycles: `python -m tests.faces.making.scene PARTS.npz SCENE.json OUT.png`.

Needs the wheel bpy.

The parts come in decimetres, y up, z to the front; Blender's z is up, so x, y, z -> x, -z, y.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from mathutils import Quaternion, Vector
from mathutils.bvhtree import BVHTree

from .materials import Nodes, cloth, eye_material, hair_material, lens_material, plain, skin
from .strands import Growth, grow, tubes


def turned(points: Any) -> Any:
    return np.stack([points[:, 0], -points[:, 2], points[:, 1]], 1)


def mesh(name: str, points: Any, faces: Any, material: Any, levels: int = 0) -> Any:
    data = bpy.data.meshes.new(name)
    quads = np.asarray(faces, np.int64)
    data.vertices.add(len(points))
    data.vertices.foreach_set("co", turned(points).astype(np.float32).ravel())
    corners = quads.shape[1]
    data.loops.add(quads.size)
    data.loops.foreach_set("vertex_index", quads.ravel().astype(np.int32))
    data.polygons.add(len(quads))
    data.polygons.foreach_set("loop_start", np.arange(0, quads.size, corners, dtype=np.int32))
    data.polygons.foreach_set("loop_total", np.full(len(quads), corners, np.int32))
    data.polygons.foreach_set("use_smooth", np.ones(len(quads), bool))
    data.update(calc_edges=True)
    data.validate()
    thing = bpy.data.objects.new(name, data)
    bpy.context.collection.objects.link(thing)
    data.materials.append(material)
    if levels:
        smooth = thing.modifiers.new("smooth", "SUBSURF")
        smooth.levels = smooth.render_levels = levels
    return thing


def values(thing: Any, name: str, numbers: Any) -> None:
    kept = thing.data.attributes.new(name, "FLOAT", "POINT")
    kept.data.foreach_set("value", np.asarray(numbers, np.float32))


def surface_of(things: list[Any]) -> Any:
    """The nearest point of evaluated meshes, as strands ask for it."""
    graph = bpy.context.evaluated_depsgraph_get()
    points, polygons, start = [], [], 0
    for thing in things:
        found = thing.evaluated_get(graph).to_mesh()
        points += [v.co.copy() for v in found.vertices]
        polygons += [[i + start for i in p.vertices] for p in found.polygons]
        start += len(found.vertices)
    tree = BVHTree.FromPolygons(points, polygons)

    def nearest(places: Any) -> tuple[Any, Any]:
        found = [tree.find_nearest(Vector((x, -z, y))) for x, y, z in places]
        back = np.array([[*f[0], *f[1]] for f in found])
        return back[:, [0, 2, 1]] * [1, 1, -1], back[:, [3, 5, 4]] * [1, 1, -1]

    return nearest


def hair(name: str, roots: Any, head: Any, size: float, growth: Growth, material: Any, nearest: Any, seed: int) -> None:
    at, out = nearest(roots)
    strands = grow(at, out, head, size, growth, nearest, seed)
    add_strands(name, strands, growth.radius, material, seed)


def add_strands(name: str, strands: Any, radius: float, material: Any, seed: int) -> None:
    points, quads = tubes(strands, radius)
    thing = mesh(name, points, quads, material)
    tone = np.random.default_rng(seed).random(len(strands))
    values(thing, "tone", np.repeat(tone, strands.shape[1] * 3))


def light(spot: dict[str, Any], target: Any, scale: float) -> None:
    lamp = bpy.data.lights.new("lamp", "AREA")
    lamp.energy, lamp.size, lamp.color = spot["power"] * scale**2, spot["size"] * scale, spot["color"]
    thing = bpy.data.objects.new("lamp", lamp)
    yaw, height, away = np.radians(spot["yaw"]), np.radians(spot["height"]), spot["away"] * scale
    offset = Vector((np.sin(yaw) * np.cos(height), -np.cos(yaw) * np.cos(height), np.sin(height))) * away
    thing.location = target + offset
    thing.rotation_euler = (-offset).to_track_quat("-Z", "Y").to_euler()
    bpy.context.collection.objects.link(thing)


def main(parts_file: str, scene_file: str, out: str) -> None:
    parts = dict(np.load(parts_file))
    plan = json.loads(Path(scene_file).read_text())
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    look = plan["look"]

    body = mesh("body", parts["body"], parts["body_faces"], skin(look), 2)
    for name in plan["attributes"]:
        values(body, name, parts["at_" + name])
    shirt = mesh("shirt", parts["shirt"], parts["shirt_faces"], cloth(look["cloth"]), 2)
    thick = shirt.modifiers.new("thick", "SOLIDIFY")
    thick.thickness, thick.offset = 0.05 * plan["size"], 1.0
    head = parts["skull"]

    bare = surface_of([body])
    dressed = surface_of([body, shirt])
    for k, system in enumerate(plan["hair"]):
        growth = Growth(**system["growth"])
        material = hair_material(system["color"], system["gray"])
        under = dressed if growth.length > 1.2 else bare
        hair(f"hair{k}", parts[f"roots{k}"], head, plan["size"], growth, material, under, plan["seed"] + k)
    lash = plain("lash", look["lash"], 0.5)
    add_strands("lashes", parts["lashes"], 0.0035 * plan["size"], lash, plan["seed"])

    for side in "lr":
        radius = plan["eyes"][side]["radius"]
        eye = mesh("eye", parts["eye"] * radius, parts["eye_faces"], eye_material(look["iris"], radius, plan["pupil"]))
        eye.location = turned(np.array([plan["eyes"][side]["center"]]))[0]
        up, across = np.radians(plan["eyes"][side]["gaze"])
        eye.rotation_euler = (up, 0.0, across)
    mesh(
        "teeth",
        parts["teeth"],
        parts["teeth_faces"],
        Nodes("teeth")
        .set(
            Base_Color=look["teeth"],
            Roughness=0.25,
            Subsurface_Weight=0.15,
            Specular_IOR_Level=0.5,
            Subsurface_Radius=(0.03, 0.02, 0.012),
        )
        .material,
    )
    mesh("gums", parts["gums"], parts["gums_faces"], plain("gums", (0.5, 0.13, 0.12), 0.3, Subsurface_Weight=0.1))
    mesh(
        "tongue",
        parts["tongue"],
        parts["tongue_faces"],
        plain("tongue", (0.52, 0.15, 0.14), 0.35, Subsurface_Weight=0.15, Specular_IOR_Level=0.5),
        2,
    )
    if "frame" in parts:
        metal = 1.0 if look["metal"] else 0.0
        mesh("frame", parts["frame"], parts["frame_faces"], plain("frame", look["frame"], 0.3, Metallic=metal), 0)
        mesh("lens", parts["lens"], parts["lens_faces"], lens_material(), 0)

    target = Vector(turned(parts["target"][None])[0])
    lens = bpy.data.cameras.new("camera")
    lens.sensor_width, lens.lens = 36.0, plan["lens"]
    yaw, pitch = np.radians(plan["yaw"]), np.radians(plan["pitch"])
    away = Vector((np.sin(yaw) * np.cos(pitch), -np.cos(yaw) * np.cos(pitch), np.sin(pitch))) * plan["distance"]
    camera = bpy.data.objects.new("camera", lens)
    camera.location = target + away
    camera.rotation_mode = "QUATERNION"
    roll = Vector((0, 0, 1))
    camera.rotation_quaternion = (-away).to_track_quat("-Z", "Y") @ Quaternion(roll, np.radians(plan["roll"]))
    lens.shift_x, lens.shift_y = plan["shift"]
    lens.dof.use_dof, lens.dof.focus_distance, lens.dof.aperture_fstop = (
        True,
        plan["distance"] - 0.6 * plan["size"],
        plan["stop"],
    )
    bpy.context.collection.objects.link(camera)
    scene.camera = camera

    for spot in plan["lights"]:
        light({**spot, "yaw": spot["yaw"] + plan["yaw"]}, target, plan["size"])
    world = bpy.data.worlds.new("world")
    world.use_nodes = True
    world.node_tree.nodes["Background"].inputs[0].default_value = [*plan["ambient"], 1]
    scene.world = world

    scene.render.engine = "CYCLES"
    cycles = scene.cycles
    cycles.samples, cycles.use_adaptive_sampling, cycles.adaptive_threshold = plan["samples"], True, 0.015
    cycles.max_bounces, cycles.diffuse_bounces, cycles.glossy_bounces = 6, 3, 3
    cycles.transparent_max_bounces, cycles.sample_clamp_indirect = 12, 3.0
    cycles.caustics_reflective = cycles.caustics_refractive = False
    cycles.seed, cycles.use_denoising, cycles.denoiser = plan["seed"], True, "OPENIMAGEDENOISE"
    scene.render.threads_mode, scene.render.threads = "FIXED", 2
    scene.render.film_transparent = True
    scene.render.resolution_x, scene.render.resolution_y = plan["width"], plan["height"]
    scene.view_settings.view_transform, scene.view_settings.look = "Filmic", plan["contrast"]
    scene.view_settings.exposure = plan["exposure"]
    scene.render.image_settings.file_format, scene.render.image_settings.color_mode = "PNG", "RGBA"
    scene.render.filepath = out
    bpy.ops.render.render(write_still=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
