// `GET /v1/customers/{id}` on Node.js, bundled with the AWS SDK v3. The function calls the Runtime
// API directly, without a framework or a managed runtime.
import http from "node:http";
import { DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb";

const [host, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(":");
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const client = new DynamoDBClient({});

const runtime = (method, path, body) =>
  new Promise((resolve, reject) => {
    const headers = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
    const request = http.request({ host, port, method, path: `/2018-06-01/runtime/${path}`, agent, headers }, (answer) => {
      const chunks = [];
      answer.on("data", (chunk) => chunks.push(chunk));
      answer.on("end", () => resolve({ headers: answer.headers, body: Buffer.concat(chunks).toString() }));
    });
    request.on("error", reject);
    request.end(body);
  });

const plain = ({ S, N, BOOL, M, L }) => {
  if (S !== undefined) return S;
  if (N !== undefined) return Number(N);
  if (BOOL !== undefined) return BOOL;
  if (M !== undefined) return object(M);
  return L === undefined ? null : L.map(plain);
};
const object = (map) => Object.fromEntries(Object.entries(map).map(([name, value]) => [name, plain(value)]));

const handler = async (event) => {
  const Key = { PK: { S: `CUSTOMER#${event.pathParameters.id}` }, SK: { S: "PROFILE" } };
  const { Item } = await client.send(new GetItemCommand({ TableName: process.env.TABLE_NAME, Key }));
  const headers = { "content-type": "application/json" };
  if (!Item) return { statusCode: 404, headers, body: '{"message":"no such customer"}' };
  return { statusCode: 200, headers, body: JSON.stringify(object(Item)) };
};

const main = async () => {
  for (;;) {
    const { headers, body } = await runtime("GET", "invocation/next");
    const answer = JSON.stringify(await handler(JSON.parse(body)));
    await runtime("POST", `invocation/${headers["lambda-runtime-aws-request-id"]}/response`, answer);
  }
};

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
