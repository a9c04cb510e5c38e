"""Materials of the portraits' scenes; needs the wheel bpy."""

from __future__ import annotations

from typing import Any

import bpy


class Nodes:
    """A material's nodes by short calls."""

    def __init__(self, name: str) -> None:
        self.material = bpy.data.materials.new(name)
        self.material.use_nodes = True
        self.tree = self.material.node_tree
        self.surface = self.tree.nodes["Principled BSDF"]

    def node(self, kind: str, inputs: dict[Any, Any] | None = None, **settings: Any) -> Any:
        node = self.tree.nodes.new(kind)
        for key, value in settings.items():
            setattr(node, key, value)
        for key, value in (inputs or {}).items():
            self.put(node.inputs[key], value)
        return node

    def put(self, socket: Any, value: Any) -> None:
        if isinstance(value, bpy.types.NodeSocket):
            self.tree.links.new(value, socket)
        elif isinstance(value, (list, tuple)) and socket.type == "RGBA":
            socket.default_value = [*value, 1.0][:4]
        else:
            socket.default_value = value

    def set(self, **inputs: Any) -> Nodes:
        for key, value in inputs.items():
            self.put(self.surface.inputs[key.replace("_", " ")], value)
        return self

    def attribute(self, name: str) -> Any:
        return self.node("ShaderNodeAttribute", attribute_name=name).outputs["Fac"]

    def noise(self, scale: float, detail: float = 3.0, stretch: tuple[float, ...] = (1, 1, 1)) -> Any:
        where = self.node("ShaderNodeTexCoord").outputs["Object"]
        mapped = self.node("ShaderNodeMapping", {"Vector": where, "Scale": stretch}).outputs[0]
        return self.node("ShaderNodeTexNoise", {"Vector": mapped, "Scale": scale, "Detail": detail}).outputs["Fac"]

    def math(self, operation: str, a: Any, b: Any = 0.0) -> Any:
        node = self.node("ShaderNodeMath", {0: a, 1: b}, operation=operation)
        node.use_clamp = operation in ("MULTIPLY", "SUBTRACT")
        return node.outputs[0]

    def mix(self, part: Any, a: Any, b: Any, how: str = "MIX") -> Any:
        return self.node("ShaderNodeMixRGB", {"Fac": part, "Color1": a, "Color2": b}, blend_type=how).outputs[0]

    def ramp(self, value: Any, low: float, high: float) -> Any:
        node = self.node("ShaderNodeMapRange", {"Value": value, "From Min": low, "From Max": high})
        return node.outputs[0]

    def bump(self, height: Any, strength: float, distance: float, under: Any = None) -> Any:
        inputs = {"Height": height, "Strength": strength, "Distance": distance}
        if under is not None:
            inputs["Normal"] = under
        return self.node("ShaderNodeBump", inputs).outputs[0]


def skin(look: dict[str, Any]) -> Any:
    n = Nodes("skin")
    tone, deep = look["tone"], look["deep"]
    mottled = n.mix(n.math("MULTIPLY", n.ramp(n.noise(2.2, 4), 0.35, 0.7), 0.55), tone, deep)
    fine = n.mix(n.math("MULTIPLY", n.ramp(n.noise(24, 3), 0.45, 0.7), 0.42), mottled, deep)
    red = n.mix(n.math("MULTIPLY", n.attribute("blush"), look["blush"]), fine, look["red"])
    if look["freckles"]:
        spots = n.node(
            "ShaderNodeTexVoronoi", {"Scale": 26.0, "Vector": n.node("ShaderNodeTexCoord").outputs["Object"]}
        )
        near = n.math("SUBTRACT", 1.0, n.ramp(spots.outputs["Distance"], 0.12, 0.28))
        there = n.math("MULTIPLY", near, n.ramp(n.noise(3.5), 0.4, 0.6))
        there = n.math("MULTIPLY", there, n.attribute("freckled"))
        red = n.mix(n.math("MULTIPLY", there, look["freckles"]), red, look["freckle"])
    shaded = n.mix(n.math("MULTIPLY", n.attribute("socket"), look["sockets"]), red, look["shade"])
    stubble = n.math("MULTIPLY", n.attribute("beard"), n.ramp(n.noise(55, 2), 0.2, 0.75))
    shaded = n.mix(n.math("MULTIPLY", stubble, look["stubble"]), shaded, look["stubble_color"])
    shaded = n.mix(n.math("MULTIPLY", n.attribute("scalp"), look["roots"]), shaded, look["root_color"])
    lips = n.math("MULTIPLY", n.attribute("lip"), look["lips"])
    creased = n.mix(n.math("MULTIPLY", n.noise(16, 3, (2.2, 1, 0.35)), 0.35), look["lip"], deep)
    color = n.mix(lips, shaded, creased)
    color = n.mix(n.attribute("inside"), color, (0.28, 0.045, 0.04))
    pores = n.bump(n.noise(95, 2), 0.22, 0.006)
    folds = n.bump(n.noise(11, 4, (0.5, 1, 2.3)), look["wrinkles"], 0.03, pores)
    creases = n.bump(n.noise(20, 2, (2.4, 1, 0.4)), n.math("MULTIPLY", n.attribute("lip"), 0.5), 0.012, folds)
    rough = n.math("SUBTRACT", look["roughness"], n.math("MULTIPLY", n.attribute("lip"), 0.12))
    rough = n.math("SUBTRACT", rough, n.math("MULTIPLY", n.attribute("oily"), 0.05))
    n.set(Base_Color=color, Subsurface_Weight=look["scatter"], Subsurface_Scale=1.0)
    n.set(Subsurface_Radius=(0.09, 0.035, 0.02), Roughness=rough, Specular_IOR_Level=0.42, Normal=creases)
    n.surface.subsurface_method = "RANDOM_WALK"
    return n.material


def plain(name: str, color: Any, roughness: float, **more: Any) -> Any:
    return Nodes(name).set(Base_Color=color, Roughness=roughness, **more).material


def hair_material(color: Any, gray: float) -> Any:
    n = Nodes("hair")
    each = n.attribute("tone")
    varied = n.mix(n.math("MULTIPLY", each, 0.55), color, [c * 0.45 for c in color])
    white = n.ramp(each, 1 - gray - 0.05, 1 - gray + 0.05) if gray else 0.0
    return n.set(Base_Color=n.mix(white, varied, (0.62, 0.6, 0.57)), Roughness=0.38, Specular_IOR_Level=0.35).material


def cloth(color: Any) -> Any:
    n = Nodes("cloth")
    weave = n.noise(60, 2)
    n.set(
        Base_Color=n.mix(n.math("MULTIPLY", weave, 0.3), color, [c * 0.6 for c in color]),
        Roughness=0.9,
        Specular_IOR_Level=0.1,
    )
    return n.set(Sheen_Weight=0.4, Normal=n.bump(n.noise(4, 3), 0.5, 0.12, n.bump(weave, 0.5, 0.02))).material


def eye_material(iris: Any, radius: float, pupil: float) -> Any:
    n = Nodes("eye")
    where = n.node("ShaderNodeTexCoord").outputs["Object"]
    parts = n.node("ShaderNodeSeparateXYZ", {0: where})
    x, z = parts.outputs[0], parts.outputs[2]
    squared = n.math(
        "ADD",
        n.node("ShaderNodeMath", {0: x, 1: x}, operation="MULTIPLY").outputs[0],
        n.node("ShaderNodeMath", {0: z, 1: z}, operation="MULTIPLY").outputs[0],
    )
    away = n.math("DIVIDE", n.node("ShaderNodeMath", {0: squared}, operation="SQRT").outputs[0], radius)
    rays = n.node(
        "ShaderNodeTexNoise",
        {
            "Vector": n.node("ShaderNodeVectorMath", {0: where}, operation="NORMALIZE").outputs[0],
            "Scale": 16.0,
            "Detail": 4.0,
        },
    ).outputs["Fac"]
    ring = n.mix(n.ramp(away, 0.17, 0.40), [min(1, c * 1.9 + 0.03) for c in iris], iris)
    streaked = n.mix(n.math("MULTIPLY", n.ramp(rays, 0.35, 0.7), 0.6), ring, [c * 0.35 for c in iris])
    limbus = n.mix(n.ramp(away, 0.37, 0.45), streaked, [c * 0.2 for c in iris])
    veins = n.mix(n.math("MULTIPLY", n.ramp(away, 0.5, 1.0), 0.35), (0.72, 0.69, 0.66), (0.62, 0.36, 0.33))
    white = n.mix(n.ramp(away, 0.445, 0.495), limbus, veins)
    color = n.mix(n.ramp(away, pupil - 0.015, pupil + 0.015), (0.004, 0.004, 0.005), white)
    n.set(Base_Color=color, Roughness=0.22, Specular_IOR_Level=0.5, Coat_Weight=1.0, Coat_Roughness=0.03)
    return n.material


def lens_material() -> Any:
    n = Nodes("lens")
    clear = n.node("ShaderNodeBsdfTransparent", {"Color": (0.97, 0.98, 0.98)})
    gloss = n.node("ShaderNodeBsdfGlossy", {"Roughness": 0.02})
    facing = n.node("ShaderNodeFresnel", {"IOR": 1.35})
    both = n.node("ShaderNodeMixShader", {0: facing.outputs[0], 1: clear.outputs[0], 2: gloss.outputs[0]})
    n.put(n.tree.nodes["Material Output"].inputs["Surface"], both.outputs[0])
    return n.material
