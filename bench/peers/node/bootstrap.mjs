// Three routes of the shop for Lambda, written in Node.js the usual way. They use the SDK's
// document client, plain objects, and keys that are built where they are needed.
//
// The items are the same as those of Bodega's functions. An order has the same guarantees. One
// transaction writes head, lines, history, the customer's copy, the stock of every line, and the
// record of the idempotency key.
//
// The loop at the end of this file replaces Lambda's managed runtime.

import { createHash, randomBytes } from 'node:crypto';
import http from 'node:http';

import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { BatchGetCommand, DynamoDBDocumentClient, GetCommand, QueryCommand, TransactWriteCommand } from '@aws-sdk/lib-dynamodb';

const TableName = process.env.TABLE_NAME;
const db = DynamoDBDocumentClient.from(new DynamoDBClient({}));

const routes = {
  'GET /products/{id}': getProduct,
  'POST /orders': placeOrder,
  'GET /customers/{id}/orders': listOrders,
};

export async function handler(event) {
  const route = routes[event.routeKey.replace('/peers/node', '')];
  return route ? route(event) : problem(404, 'not_found', 'There is no such route.');
}

async function getProduct(event) {
  const found = await db.send(new QueryCommand({
    TableName,
    KeyConditionExpression: 'PK = :product AND SK BETWEEN :from AND :to',
    ExpressionAttributeValues: { ':product': `PRODUCT#${event.pathParameters.id}`, ':from': 'PRODUCT', ':to': 'PRODUCT$' },
  }));
  const of = (entity) => found.Items.find((item) => item.entity === entity);
  const product = of('Product');
  if (!product || product.retired) return problem(404, 'not_found', 'There is no such product.');
  const sales = of('ProductSales');
  const reviews = of('ReviewStats');
  const further = of('ProductCategories')?.paths ?? [];
  return json(200, {
    id: product.id,
    name: product.name,
    brand: product.brand,
    package_size: product.package_size ?? null,
    category_path: product.category_path,
    categories: [product.category_path, ...further],
    price: product.price,
    summary: product.summary ?? null,
    thumbnail: product.reference ? `/v1/products/${product.id}/pictures/${product.reference}` : null,
    weight_grams: product.weight_grams ?? null,
    shippable: product.shippable ?? true,
    tax_category: product.tax_category ?? 'standard',
    stock: of('Stock')?.available ?? 0,
    sold: { quantity: sales?.quantity ?? 0, orders: sales?.orders ?? 0 },
    average_rating: reviews?.rating_count ? Math.round((reviews.rating_sum / reviews.rating_count) * 100) / 100 : null,
    review_count: reviews?.rating_count ?? 0,
    version: product.version,
    created_at: product.created_at,
    updated_at: product.updated_at,
  }, { etag: `"${product.version}"` });
}

async function listOrders(event) {
  const customer = event.pathParameters.id;
  if (caller(event) !== customer) return problem(404, 'not_found', 'There is no such customer.');
  const { limit, cursor } = event.queryStringParameters ?? {};
  const page = await db.send(new QueryCommand({
    TableName,
    KeyConditionExpression: 'PK = :customer AND SK BETWEEN :from AND :to',
    ExpressionAttributeValues: { ':customer': `CUSTOMER#${customer}`, ':from': 'ORDER#', ':to': 'ORDER$' },
    ScanIndexForward: false,
    Limit: Number(limit ?? 20),
    ExclusiveStartKey: cursor && JSON.parse(Buffer.from(cursor, 'base64url').toString()),
  }));
  const items = page.Items.map(({ id, reference = null, customer_id, status, total, placed_at, line_count }) =>
    ({ id, number: orderNumber(id), reference, customer_id, status, total, placed_at, line_count }));
  const end = page.LastEvaluatedKey;
  return json(200, { items, next_cursor: end ? Buffer.from(JSON.stringify(end)).toString('base64url') : null });
}

async function placeOrder(event) {
  const key = event.headers['idempotency-key'];
  if (!key) return problem(400, 'idempotency_key_missing', 'An order needs an Idempotency-Key.');
  const wanted = JSON.parse(event.body);
  const customer = wanted.customer_id;
  if (caller(event) !== customer) return problem(404, 'not_found', 'There is no such customer.');
  const hash = createHash('sha256').update(`POST\n/v1/orders\n${event.body}`).digest('hex');

  const profile = { PK: `CUSTOMER#${customer}`, SK: 'PROFILE' };
  const claim = { PK: `IDEMPOTENCY#${customer}#${key}`, SK: 'IDEMPOTENCY' };
  const wantedProducts = wanted.lines.map((line) => ({ PK: `PRODUCT#${line.product_id}`, SK: 'PRODUCT' }));
  const read = await db.send(new BatchGetCommand({
    RequestItems: { [TableName]: { Keys: [profile, claim, ...wantedProducts], ConsistentRead: true } },
  }));
  const items = read.Responses[TableName];
  const earlier = items.find((item) => item.entity === 'IdempotencyRecord');
  if (earlier) return replay(earlier, hash);
  if (!items.some((item) => item.entity === 'Customer')) return problem(404, 'not_found', 'There is no such customer.');
  const products = new Map(items.filter((item) => item.entity === 'Product' && !item.retired).map((item) => [item.id, item]));
  if (wanted.lines.some((line) => !products.has(line.product_id))) return problem(422, 'unknown_product', 'The order names unknown products.');

  const now = new Date();
  const at = now.toISOString();
  const id = uuid7(now);
  const meta = { version: 1, rev: 1, born: uuid7(now), created_at: at, updated_at: at };
  const lines = wanted.lines.map(({ product_id, quantity }, index) => {
    const { name, price } = products.get(product_id);
    return { line: index + 1, product_id, name, quantity, unit_price: price, total: { ...price, amount: price.amount * quantity } };
  });
  const total = { amount: lines.reduce((sum, line) => sum + line.total.amount, 0), currency: lines[0].total.currency };
  const order = { id, customer_id: customer, status: 'pending', placed_at: at, total, line_count: lines.length };
  const step = { status: 'pending', at, by: customer };
  const expires = new Date(now.getTime() + 24 * 60 * 60 * 1000);

  const put = (item, condition = 'attribute_not_exists(PK)', values) => ({
    Put: { TableName, Item: { ...item, ...meta }, ConditionExpression: condition, ExpressionAttributeValues: values },
  });
  const record = {
    ...claim, entity: 'IdempotencyRecord', scope: { caller: customer, key }, request_hash: hash, answer: { order: id },
    expires_at: expires.toISOString(), ttl: Math.floor(expires.getTime() / 1000),
  };
  const transaction = [
    put(record, 'attribute_not_exists(PK) OR expires_at < :now', { ':now': at }),
    { ConditionCheck: { TableName, Key: profile, ConditionExpression: 'attribute_exists(PK)' } },
    put({ PK: `ORDER#${id}`, SK: 'ORDER', GSI2PK: `STATUS#pending#${shard(id)}`, GSI2SK: `${at}#${id}`, entity: 'Order', ...order }),
    put({ PK: `CUSTOMER#${customer}`, SK: `ORDER#${id}`, entity: 'CustomerOrder', ...order }),
    put({ PK: `ORDER#${id}`, SK: `STATUS#${at}#pending`, entity: 'OrderStatusEvent', order_id: id, ...step }),
    ...lines.flatMap((line) => [
      put({ PK: `ORDER#${id}`, SK: `ITEM#${String(line.line).padStart(20, '0')}`, entity: 'OrderLine', order_id: id, product_born: products.get(line.product_id).born, ...line }),
      {
        Update: {
          TableName,
          Key: { PK: `STOCK#${line.product_id}#main#00000000000000000000`, SK: 'STOCK' },
          UpdateExpression: 'SET available = available - :quantity, version = version + :one, rev = rev + :one, updated_at = :at',
          ConditionExpression: 'sellable = :true AND available >= :quantity',
          ExpressionAttributeValues: { ':quantity': line.quantity, ':one': 1, ':at': at, ':true': true },
        },
      },
    ]),
  ];
  try {
    await db.send(new TransactWriteCommand({ TransactItems: transaction }));
  } catch (error) {
    if (error.name !== 'TransactionCanceledException') throw error;
    const failed = error.CancellationReasons.map((reason) => reason.Code === 'ConditionalCheckFailed');
    if (failed[0]) return replay((await db.send(new GetCommand({ TableName, Key: claim, ConsistentRead: true }))).Item, hash);
    if (failed[1]) return problem(404, 'not_found', 'There is no such customer.');
    if (failed.some(Boolean)) return problem(409, 'insufficient_stock', 'There is too little in stock.');
    throw error;
  }
  return created(order, lines, [step]);
}

async function replay(record, hash) {
  if (record?.request_hash !== hash) return problem(422, 'idempotency_key_reused', 'This Idempotency-Key was used for another request.');
  const found = await db.send(new QueryCommand({
    TableName,
    KeyConditionExpression: 'PK = :order',
    ExpressionAttributeValues: { ':order': `ORDER#${record.answer.order}` },
    ConsistentRead: true,
  }));
  const of = (entity) => found.Items.filter((item) => item.entity === entity);
  const lines = of('OrderLine').map(({ line, product_id, name, quantity, unit_price, total }) =>
    ({ line, product_id, name, quantity, unit_price, total }));
  const history = of('OrderStatusEvent').filter((step) => step.status === 'pending').map(({ status, at, by }) => ({ status, at, by }));
  return created({ ...of('Order')[0], status: 'pending' }, lines, history, { 'idempotency-replayed': 'true' });
}

function created({ id, customer_id, status, total, placed_at }, items, history, headers) {
  const none = { ...total, amount: 0 };
  const lines = items.map(({ total, ...line }) => ({ ...line, thumbnail: null, discount: none, tax: none, total }));
  const totals = { items: total, discount: none, shipping: none, tax: none, total };
  const order = { id, number: orderNumber(id), reference: null, customer_id, store_id: null, status, lines, total, totals, placed_at, history, payments: [], invoice_number: null, version: 1 };
  return json(201, order, { location: `/v1/orders/${id}`, etag: '"1"', ...headers });
}

const caller = (event) => event.requestContext.authorizer.jwt.claims.sub;

function json(statusCode, body, headers) {
  return { statusCode, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) };
}

function problem(status, code, detail) {
  return { ...json(status, { status, code, detail }), headers: { 'content-type': 'application/problem+json' } };
}

function uuid7(at) {
  const hex = at.getTime().toString(16).padStart(12, '0');
  const random = randomBytes(10);
  random[0] = (random[0] & 0x0f) | 0x70;
  random[2] = (random[2] & 0x3f) | 0x80;
  const rest = random.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-${rest.slice(0, 4)}-${rest.slice(4, 8)}-${rest.slice(8)}`;
}

// Returns the partition that lists the order under its status. Each status has four partitions. The
// hash of the order's id selects one.
function shard(id) {
  return String(fnv1a(id) % 4n).padStart(20, '0');
}

// Returns seven digits of the hash of the order's id to the base 29, and a check character.
function orderNumber(id) {
  const digits = [];
  for (let rest = fnv1a(id); digits.length < 7; rest /= 29n) digits.push(Number(rest % 29n));
  const sum = digits.reduce((sum, digit, at) => sum + (8 - at) * digit, 0);
  digits.push((29 - (sum % 29)) % 29);
  const text = digits.map((digit) => '23456789ABCDEFGHJKMNPQRTVWXYZ'[digit]).join('');
  return `${text.slice(0, 4)}-${text.slice(4)}`;
}

function fnv1a(text) {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash;
}

const [host, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(':');
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

function runtime(method, path, value) {
  const body = value === undefined ? '' : JSON.stringify(value);
  const options = { host, port, agent, method, path: `/2018-06-01/runtime/${path}`, headers: { 'content-length': Buffer.byteLength(body) } };
  return new Promise((resolve, reject) => {
    const request = http.request(options, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () => resolve({ headers: response.headers, body: Buffer.concat(chunks).toString() }));
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end(body);
  });
}

for (;;) {
  const { headers, body } = await runtime('GET', 'invocation/next');
  const id = headers['lambda-runtime-aws-request-id'];
  try {
    await runtime('POST', `invocation/${id}/response`, await handler(JSON.parse(body)));
  } catch (error) {
    await runtime('POST', `invocation/${id}/error`, { errorType: error.name, errorMessage: error.message });
  }
}
