"""Values that a generator cannot make up.

A valid cursor comes from a list, and a valid version from a response. The body of a product import
has one product in JSON on each line, so it needs its own serializer.
"""

import json

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    if isinstance(value, (bytes, str)):
        return value
    return (json.dumps(value) + "\n").encode()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Changes requests that match the schema.

    The hook removes the cursor, and replaces the value of If-Match with the version 1. If two
    parameters exclude each other or limit the same range, at most one of them remains.
    """
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    case.query = query = case.query or {}
    headers = case.headers or {}
    operation = case.operation.definition.raw.get("operationId")
    query.pop("cursor", None)
    for low, high in (("from", "to"), ("min_price", "max_price")):
        if low in query:
            query.pop(high, None)
    if query.get("period") == "all":
        query.pop("date", None)
    if operation == "listSales":
        query.pop("from", None)
    if operation == "findCustomers":
        query.pop("tier" if "email" in query else "email", None)
        if not query.keys() & {"tier", "email"}:
            query["tier"] = "gold"
    # In a path, `_HH` encodes a byte in hexadecimal. Invented bytes may not be valid UTF-8.
    if "_" in str(query.get("path", "")):
        del query["path"]
    if "If-Match" in headers:
        headers["If-Match"] = '"1"'
        headers.pop("If-None-Match", None)
