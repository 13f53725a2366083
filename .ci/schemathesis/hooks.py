"""What a generator cannot make up: a cursor comes from the list itself, a version from an answer, and a product's line is JSON like any other."""

import json

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    if isinstance(value, (bytes, str)):
        return value
    return (json.dumps(value) + "\n").encode()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Of what keeps to the schema: no cursor that nobody gave out, a tag with its quotes, and of what excludes each other one."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    case.query = query = case.query or {}
    headers = case.headers or {}
    operation = case.operation.definition.raw.get("operationId")
    query.pop("cursor", None)
    for low, high in (("from", "to"), ("min_price", "max_price")):
        if low in query:
            query.pop(high, None)
    if operation == "listSales":
        query.pop("from", None)
    if operation == "findCustomers":
        query.pop("tier" if "email" in query else "email", None)
        if not query.keys() & {"tier", "email"}:
            query["tier"] = "gold"
    # Bytes that are no text.
    if "_" in str(query.get("path", "")):
        del query["path"]
    if "If-Match" in headers:
        headers["If-Match"] = '"1"'
        headers.pop("If-None-Match", None)
