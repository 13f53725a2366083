"""Three routes of the shop for Lambda, written in Python the usual way.

They use boto3's table resource, plain dictionaries, and keys that are built where they are needed.

The items are the same as those of Bodega's functions. An order has the same guarantees. One
transaction writes head, lines, history, the customer's copy, the stock of every line, and the
record of the idempotency key.

The loop in `main` replaces Lambda's managed runtime.
"""

import base64
import hashlib
import http.client
import json
import os
import secrets
from datetime import datetime, timedelta, timezone

import boto3
from boto3.dynamodb.conditions import Key

TABLE_NAME = os.environ["TABLE_NAME"]
dynamodb = boto3.resource("dynamodb")
table = dynamodb.Table(TABLE_NAME)
client = dynamodb.meta.client


def handler(event, _context=None):
    route = ROUTES.get(event["routeKey"].replace("/peers/python", ""))
    return route(event) if route else problem(404, "not_found", "There is no such route.")


def get_product(event):
    key = Key("PK").eq(f"PRODUCT#{event['pathParameters']['id']}") & Key("SK").between("PRODUCT", "PRODUCT$")
    items = {item["entity"]: item for item in table.query(KeyConditionExpression=key)["Items"]}
    product = items.get("Product")
    if product is None or product.get("retired"):
        return problem(404, "not_found", "There is no such product.")
    sales, reviews = items.get("ProductSales", {}), items.get("ReviewStats", {})
    count = reviews.get("rating_count", 0)
    further = items.get("ProductCategories", {}).get("paths", [])
    body = {
        "id": product["id"],
        "name": product["name"],
        "brand": product["brand"],
        "package_size": product.get("package_size"),
        "category_path": product["category_path"],
        "categories": [product["category_path"], *further],
        "price": product["price"],
        "summary": product.get("summary"),
        "thumbnail": f"/v1/products/{product['id']}/pictures/{product['reference']}" if "reference" in product else None,
        "weight_grams": product.get("weight_grams"),
        "shippable": product.get("shippable", True),
        "tax_category": product.get("tax_category", "standard"),
        "stock": items.get("Stock", {}).get("available", 0),
        "sold": {"quantity": sales.get("quantity", 0), "orders": sales.get("orders", 0)},
        "average_rating": round(float(reviews["rating_sum"] / count), 2) if count else None,
        "review_count": count,
        "version": product["version"],
        "created_at": product["created_at"],
        "updated_at": product["updated_at"],
    }
    return answer(200, body, {"etag": f'"{product["version"]}"'})


def list_orders(event):
    customer = event["pathParameters"]["id"]
    if caller(event) != customer:
        return problem(404, "not_found", "There is no such customer.")
    parameters = event.get("queryStringParameters", {})
    query = {
        "KeyConditionExpression": Key("PK").eq(f"CUSTOMER#{customer}") & Key("SK").between("ORDER#", "ORDER$"),
        "ScanIndexForward": False,
        "Limit": int(parameters.get("limit", 20)),
    }
    if "cursor" in parameters:
        query["ExclusiveStartKey"] = json.loads(base64.urlsafe_b64decode(parameters["cursor"]))
    page = table.query(**query)
    fields = ("reference", "customer_id", "status", "total", "placed_at", "line_count")
    items = [
        {"id": item["id"], "number": order_number(item["id"]), **{field: item.get(field) for field in fields}}
        for item in page["Items"]
    ]
    end = page.get("LastEvaluatedKey")
    return answer(200, {"items": items, "next_cursor": base64.urlsafe_b64encode(json.dumps(end).encode()).decode() if end else None})


def place_order(event):
    idempotency_key = event["headers"].get("idempotency-key")
    if not idempotency_key:
        return problem(400, "idempotency_key_missing", "An order needs an Idempotency-Key.")
    wanted = json.loads(event["body"])
    customer = wanted["customer_id"]
    if caller(event) != customer:
        return problem(404, "not_found", "There is no such customer.")
    request_hash = hashlib.sha256(f"POST\n/v1/orders\n{event['body']}".encode()).hexdigest()

    profile = {"PK": f"CUSTOMER#{customer}", "SK": "PROFILE"}
    claim = {"PK": f"IDEMPOTENCY#{customer}#{idempotency_key}", "SK": "IDEMPOTENCY"}
    wanted_products = [{"PK": f"PRODUCT#{line['product_id']}", "SK": "PRODUCT"} for line in wanted["lines"]]
    keys = {TABLE_NAME: {"Keys": [profile, claim, *wanted_products], "ConsistentRead": True}}
    items = dynamodb.batch_get_item(RequestItems=keys)["Responses"][TABLE_NAME]
    for item in items:
        if item["entity"] == "IdempotencyRecord":
            return replay(item, request_hash)
    if not any(item["entity"] == "Customer" for item in items):
        return problem(404, "not_found", "There is no such customer.")
    products = {item["id"]: item for item in items if item["entity"] == "Product" and not item.get("retired")}
    if any(line["product_id"] not in products for line in wanted["lines"]):
        return problem(422, "unknown_product", "The order names unknown products.")

    now = datetime.now(timezone.utc)
    at, order_id = instant(now), uuid7(now)
    meta = {"version": 1, "rev": 1, "born": uuid7(now), "created_at": at, "updated_at": at}
    lines = []
    for number, line in enumerate(wanted["lines"], 1):
        product = products[line["product_id"]]
        price = product["price"]
        lines.append({
            "line": number,
            "product_id": line["product_id"],
            "name": product["name"],
            "quantity": line["quantity"],
            "unit_price": price,
            "total": {**price, "amount": price["amount"] * line["quantity"]},
        })
    total = {"amount": sum(line["total"]["amount"] for line in lines), "currency": lines[0]["total"]["currency"]}
    order = {"id": order_id, "customer_id": customer, "status": "pending", "placed_at": at, "total": total, "line_count": len(lines)}
    step = {"status": "pending", "at": at, "by": customer}
    expires = now + timedelta(days=1)

    def put(item, condition="attribute_not_exists(PK)", **values):
        return {"Put": {"TableName": TABLE_NAME, "Item": {**item, **meta}, "ConditionExpression": condition, **values}}

    record = {
        **claim, "entity": "IdempotencyRecord", "scope": {"caller": customer, "key": idempotency_key}, "request_hash": request_hash,
        "answer": {"order": order_id}, "expires_at": instant(expires), "ttl": int(expires.timestamp()),
    }
    listed = {"GSI2PK": f"STATUS#pending#{shard(order_id)}", "GSI2SK": f"{at}#{order_id}"}
    transaction = [
        put(record, "attribute_not_exists(PK) OR expires_at < :now", ExpressionAttributeValues={":now": at}),
        {"ConditionCheck": {"TableName": TABLE_NAME, "Key": profile, "ConditionExpression": "attribute_exists(PK)"}},
        put({"PK": f"ORDER#{order_id}", "SK": "ORDER", **listed, "entity": "Order", **order}),
        put({"PK": f"CUSTOMER#{customer}", "SK": f"ORDER#{order_id}", "entity": "CustomerOrder", **order}),
        put({"PK": f"ORDER#{order_id}", "SK": f"STATUS#{at}#pending", "entity": "OrderStatusEvent", "order_id": order_id, **step}),
    ]
    for line in lines:
        born = products[line["product_id"]]["born"]
        transaction.append(put({
            "PK": f"ORDER#{order_id}", "SK": f"ITEM#{line['line']:020}", "entity": "OrderLine", "order_id": order_id,
            "product_born": born, **line,
        }))
        transaction.append({
            "Update": {
                "TableName": TABLE_NAME,
                "Key": {"PK": f"STOCK#{line['product_id']}#main#00000000000000000000", "SK": "STOCK"},
                "UpdateExpression": "SET available = available - :quantity, version = version + :one, rev = rev + :one, updated_at = :at",
                "ConditionExpression": "sellable = :true AND available >= :quantity",
                "ExpressionAttributeValues": {":quantity": line["quantity"], ":one": 1, ":at": at, ":true": True},
            }
        })
    try:
        client.transact_write_items(TransactItems=transaction)
    except client.exceptions.TransactionCanceledException as error:
        failed = [reason["Code"] == "ConditionalCheckFailed" for reason in error.response["CancellationReasons"]]
        if failed[0]:
            return replay(table.get_item(Key=claim, ConsistentRead=True).get("Item"), request_hash)
        if failed[1]:
            return problem(404, "not_found", "There is no such customer.")
        if any(failed):
            return problem(409, "insufficient_stock", "There is too little in stock.")
        raise
    return created(order, lines, [step])


def replay(record, request_hash):
    if record is None or record["request_hash"] != request_hash:
        return problem(422, "idempotency_key_reused", "This Idempotency-Key was used for another request.")
    order = Key("PK").eq(f"ORDER#{record['answer']['order']}")
    items = table.query(KeyConditionExpression=order, ConsistentRead=True)["Items"]
    head = next(item for item in items if item["entity"] == "Order")
    fields = ("line", "product_id", "name", "quantity", "unit_price", "total")
    lines = [{field: item[field] for field in fields} for item in items if item["entity"] == "OrderLine"]
    steps = [item for item in items if item["entity"] == "OrderStatusEvent" and item["status"] == "pending"]
    history = [{field: item[field] for field in ("status", "at", "by")} for item in steps]
    return created({**head, "status": "pending"}, lines, history, {"idempotency-replayed": "true"})


def created(order, lines, history, headers=None):
    total = order["total"]
    none = {**total, "amount": 0}
    body = {
        "id": order["id"],
        "number": order_number(order["id"]),
        "reference": None,
        "customer_id": order["customer_id"],
        "store_id": None,
        "status": order["status"],
        "lines": [{**line, "thumbnail": None, "discount": none, "tax": none} for line in lines],
        "total": total,
        "totals": {"items": total, "discount": none, "shipping": none, "tax": none, "total": total},
        "placed_at": order["placed_at"],
        "history": history,
        "payments": [],
        "invoice_number": None,
        "version": 1,
    }
    return answer(201, body, {"location": f"/v1/orders/{order['id']}", "etag": '"1"', **(headers or {})})


def caller(event):
    return event["requestContext"]["authorizer"]["jwt"]["claims"]["sub"]


def answer(status, body, headers=None):
    # boto3 returns numbers as decimals. All numbers of the shop are integers.
    headers = {"content-type": "application/json", **(headers or {})}
    return {"statusCode": status, "headers": headers, "body": json.dumps(body, default=int)}


def problem(status, code, detail):
    return answer(status, {"status": status, "code": code, "detail": detail}, {"content-type": "application/problem+json"})


def instant(at):
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def uuid7(at):
    # Microseconds are removed, because an order's id and its `placed_at` have the same instant in
    # milliseconds.
    millis = int(at.timestamp()) * 1000 + at.microsecond // 1000
    random = bytearray(secrets.token_bytes(10))
    random[0] = random[0] & 0x0F | 0x70
    random[2] = random[2] & 0x3F | 0x80
    text, rest = f"{millis:012x}", random.hex()
    return f"{text[:8]}-{text[8:]}-{rest[:4]}-{rest[4:8]}-{rest[8:]}"


def shard(order_id):
    """Returns the order's partition of the list of a status.

    The list has four partitions, and the hash of the order's id selects one.
    """
    return f"{fnv1a(order_id) % 4:020}"


def order_number(order_id):
    """Returns seven digits of the hash of the order's id to the base 29, and a check character."""
    alphabet, rest, digits = "23456789ABCDEFGHJKMNPQRTVWXYZ", fnv1a(order_id), []
    for _ in range(7):
        rest, digit = divmod(rest, 29)
        digits.append(digit)
    digits.append(-sum((8 - at) * digit for at, digit in enumerate(digits)) % 29)
    text = "".join(alphabet[digit] for digit in digits)
    return f"{text[:4]}-{text[4:]}"


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


ROUTES = {
    "GET /products/{id}": get_product,
    "POST /orders": place_order,
    "GET /customers/{id}/orders": list_orders,
}


def main():
    api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])

    def runtime(method, path, value=None):
        api.request(method, f"/2018-06-01/runtime/{path}", None if value is None else json.dumps(value).encode())
        response = api.getresponse()
        return response.headers, response.read()

    while True:
        headers, body = runtime("GET", "invocation/next")
        invocation = f"invocation/{headers['lambda-runtime-aws-request-id']}"
        try:
            result = handler(json.loads(body))
        except Exception as error:  # Lambda's runtime reports every exception of a handler.
            runtime("POST", f"{invocation}/error", {"errorType": type(error).__name__, "errorMessage": str(error)})
        else:
            runtime("POST", f"{invocation}/response", result)


if __name__ == "__main__":
    main()
