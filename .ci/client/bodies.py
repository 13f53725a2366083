#!/usr/bin/env python3
"""Writes a TypeScript file with each example of a body in openapi.yaml, as a constant of its type."""

import json
import sys

import yaml

METHODS = {"get", "put", "post", "patch", "delete"}

document = yaml.safe_load(open("openapi.yaml", encoding="utf-8"))


def target(node):
    while "$ref" in node:
        reference = node["$ref"]
        node = document
        for name in reference.removeprefix("#/").split("/"):
            node = node[name]
    return node


def constant(type_name, example):
    print(f"(): {type_name} => ({json.dumps(example, ensure_ascii=False)});")


print('import type { components, paths } from "./api.js";')
for name, schema in document["components"]["schemas"].items():
    for example in schema.get("examples", []):
        constant(f'components["schemas"]["{name}"]', example)
bodies = 0
for path, operations in document["paths"].items():
    for method in METHODS & operations.keys():
        for media, content in operations[method].get("requestBody", {}).get("content", {}).items():
            if media.endswith("json"):
                examples = target(content["schema"]).get("examples") or sys.exit(f"{method} {path} has no example")
                for example in examples:
                    constant(f'NonNullable<paths["{path}"]["{method}"]["requestBody"]>["content"]["{media}"]', example)
                    bodies += 1
print(f"{bodies} bodies", file=sys.stderr)
