"""`GET /v1/customers/{id}` on Python with boto3.

The function calls the Runtime API directly, without a framework or a managed runtime.
"""

import http.client
import json
import os

import boto3

runtime = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
client = boto3.client("dynamodb")


def call(method, path, body=None):
    runtime.request(method, f"/2018-06-01/runtime/{path}", body)
    answer = runtime.getresponse()
    return answer.headers, answer.read()


def plain(value):
    [(kind, content)] = value.items()
    match kind:
        case "N":
            return int(content)
        case "M":
            return {name: plain(value) for name, value in content.items()}
        case "L":
            return [plain(value) for value in content]
        case _:
            return content


def handler(event):
    key = {"PK": {"S": f"CUSTOMER#{event['pathParameters']['id']}"}, "SK": {"S": "PROFILE"}}
    item = client.get_item(TableName=os.environ["TABLE_NAME"], Key=key).get("Item")
    headers = {"content-type": "application/json"}
    if item is None:
        return {"statusCode": 404, "headers": headers, "body": '{"message":"no such customer"}'}
    return {"statusCode": 200, "headers": headers, "body": json.dumps(plain({"M": item}))}


while True:
    headers, body = call("GET", "invocation/next")
    answer = json.dumps(handler(json.loads(body)))
    call("POST", f"invocation/{headers['lambda-runtime-aws-request-id']}/response", answer)
