#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::*;

fn real_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../template.yaml")
}

fn real() -> Template {
    Template::read(&real_path()).unwrap()
}

fn local() -> Deployment {
    Deployment::new("eu-west-1", "111122223333")
        .parameter("SearchEndpoint", "http://127.0.0.1:9200")
        .parameter("SearchArn", "arn:aws:es:eu-west-1:111122223333:domain/local")
        .parameter("CursorKeysSecret", "arn:cursors")
        .parameter("EmailCodeKeysSecret", "arn:codes")
        .parameter("MailFrom", "shop@example.com")
        .parameter("MailIdentity", "example.com")
        .parameter("WebhookKeysSecret", "arn:aws:secretsmanager:eu-west-1:111122223333:secret:webhooks")
        .name("Table", "bodega")
}

mod authorizer;
mod bus;
mod cors;
mod mappings;
mod rules;
mod schedules;

/// A complete small template. Tests replace lines of it.
const SMALL: &str = "\
Parameters:
  Level: {Type: String, Default: low}
  Secret: {Type: String}
Conditions:
  Low: !Equals [!Ref Level, low]
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{AttributeName: A, AttributeType: S}, {AttributeName: B, AttributeType: S}]
      KeySchema: [{AttributeName: A, KeyType: HASH}, {AttributeName: B, KeyType: RANGE}]
  Api:
    Type: AWS::Serverless::HttpApi
    Properties: {Auth: {DefaultAuthorizer: Jwt, Authorizers: {Jwt: {JwtConfiguration: {issuer: https://issuer.example, audience: [shop]}}}}}
  One:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/one
      Handler: bootstrap
      Timeout: 3
      MemorySize: 128
      Environment: {Variables: {LEVEL: !If [Low, l, h]}}
      Events:
        Read: {Type: HttpApi, Properties: {ApiId: !Ref Api, Method: get, Path: '/v1/things/{id}'}}
";

fn small(from: &str, to: &str) -> Result<Template, TemplateError> {
    assert!(SMALL.contains(from), "the small template has no {from:?}");
    Template::parse_for(&SMALL.replace(from, to), &Deployment::new("r", "a"))
}

fn refusal(from: &str, to: &str) -> String {
    small(from, to).unwrap_err().to_string()
}

#[test]
fn literal_values_are_distinguished_from_computed_values() {
    let template =
        small("{LEVEL: !If [Low, l, h]}", "{LEVEL: !If [Low, l, h], PLACE: !Ref Level, COLOUR: '3'}").unwrap();
    let function = &template.functions[0];
    assert_eq!(function.environment.keys().collect::<Vec<_>>(), ["COLOUR", "LEVEL", "PLACE"]);
    assert_eq!(function.literals.iter().collect::<Vec<_>>(), ["COLOUR"]);
}

#[test]
fn a_function_without_its_own_tracing_has_the_tracing_of_the_globals() {
    let globals = "Globals: {Function: {Tracing: Active}}\nResources:\n  Table:";
    assert_eq!(small("Handler", "Handler").unwrap().functions[0].tracing, None);
    let template = small("Resources:\n  Table:", globals).unwrap();
    assert_eq!(template.functions[0].tracing.as_deref(), Some("Active"));
    let template = small("Handler", "Tracing: PassThrough\n      Handler").unwrap();
    assert_eq!(template.functions[0].tracing.as_deref(), Some("PassThrough"));
}

#[test]
fn the_real_template_has_the_table_of_the_design() {
    let table = real().table;
    assert_eq!((table.key.partition.as_str(), table.key.sort.as_str()), ("PK", "SK"));
    let names: Vec<&str> = table.indexes.iter().map(|index| index.name.as_str()).collect();
    assert_eq!(names, ["GSI1", "GSI2", "GSI3"]);
    for index in &table.indexes {
        assert_eq!(index.key.partition, format!("{}PK", index.name));
        assert_eq!(index.key.sort, format!("{}SK", index.name));
        assert_ne!(index.projection, Projection::All, "{}", index.name);
    }
    assert_eq!(table.stream_view.as_deref(), Some("NEW_AND_OLD_IMAGES"));
    assert_eq!(table.ttl_attribute.as_deref(), Some("ttl"));
}

#[test]
fn the_real_table_definition_becomes_api_requests() {
    let table = real().table;
    let request = table.create_table_request("copy");
    assert_eq!(request["TableName"], "copy");
    assert_eq!(request["BillingMode"], "PAY_PER_REQUEST");
    assert_eq!(request["AttributeDefinitions"].as_array().unwrap().len(), 8);
    assert_eq!(
        request["KeySchema"],
        json!([
            {"AttributeName": "PK", "KeyType": "HASH"},
            {"AttributeName": "SK", "KeyType": "RANGE"},
        ])
    );
    assert_eq!(request["GlobalSecondaryIndexes"][0]["IndexName"], "GSI1");
    assert_eq!(request["StreamSpecification"], json!({"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"}));
    assert_eq!(table.time_to_live_request("copy").unwrap()["TimeToLiveSpecification"]["AttributeName"], "ttl");
}

#[test]
fn the_real_template_has_its_functions_with_resolved_settings() {
    let template = Template::read_for(&real_path(), &local()).unwrap();
    let ids: Vec<&str> = template.functions.iter().map(|function| function.logical_id.as_str()).collect();
    let streams =
        ["StreamSearch", "StreamEvents", "Notifier", "Fulfilment", "Cashier", "Courier", "Janitor", "Splitter"];
    let http = [
        "Customers",
        "Catalog",
        "Orders",
        "Wallet",
        "Community",
        "Organizations",
        "Documents",
        "Search",
        "Insights",
        "Support",
        "Settings",
        "Agents",
    ];
    assert_eq!(ids, [&http[..], &streams].concat());
    let customers = template.function("Customers").unwrap();
    assert_eq!(customers.crate_name(), "customers");
    assert_eq!(customers.handler, "bootstrap");
    assert_eq!(customers.timeout, Duration::from_secs(10));
    assert_eq!(customers.environment["TABLE_NAME"], "bodega");
    assert_eq!(customers.environment["CURSOR_KEYS_SECRET"], "arn:cursors");
    let events = template.function("StreamEvents").unwrap();
    assert_eq!(events.crate_name(), "stream");
    assert_eq!(events.environment["SINKS"], "bus,audit,derived");
    assert_eq!(events.environment["BUS_NAME"], "Bus");
    assert_eq!(events.environment["STOCK_LOW_THRESHOLD"], "10");
    assert!(!events.environment.contains_key("SEARCH_ENDPOINT"));
}

#[test]
fn permissions_are_only_for_the_queried_indexes_and_never_for_a_scan() {
    for function in real().functions {
        for statement in &function.statements {
            for action in &statement.actions {
                assert!(!action.contains('*'), "{}: {action}", function.logical_id);
                assert_ne!(action, "dynamodb:Scan", "{}", function.logical_id);
            }
            for resource in &statement.resources {
                assert!(!resource.ends_with("index/*") && resource != "*", "{}: {resource}", function.logical_id);
            }
        }
    }
    let template = real();
    assert!(template.function("Orders").unwrap().may("dynamodb:Query", "index/GSI2"));
    assert!(!template.function("Search").unwrap().may("dynamodb:Query", "index/GSI2"));
}

#[test]
fn only_the_catalogue_the_counters_guests_agents_and_webhooks_are_public() {
    let template = real();
    // The function checks the key of an agent.
    let is_of_agents =
        |route: &&Route| ["/ucp/", "/acp/", "/.well-known/"].iter().any(|below| route.path.starts_with(below));
    assert!(template.routes.iter().filter(is_of_agents).all(|route| route.authorizer.is_none()));
    let public = template.routes.iter().filter(|route| route.authorizer.is_none() && !is_of_agents(route));
    let public: BTreeSet<String> = public.map(Route::key).collect();
    let expected = [
        "DELETE /v1/carts/{id}",
        "DELETE /v1/carts/{id}/items/{product}",
        "GET /v1/carts/{id}",
        "GET /v1/categories",
        "GET /v1/categories/{path}",
        "GET /v1/categories/{path}/ancestors",
        "GET /v1/categories/{path}/children",
        "GET /v1/categories/{path}/products",
        "GET /v1/categories/{path}/subtree",
        "GET /v1/guest/orders/{id}",
        "GET /v1/guest/orders/{id}/payments",
        "GET /v1/leaderboards/{by}",
        "GET /v1/products",
        "GET /v1/products/{id}",
        "GET /v1/products/{id}/content",
        "GET /v1/products/{id}/likes",
        "GET /v1/products/{id}/pictures",
        "GET /v1/products/{id}/pictures/{picture}",
        "GET /v1/products/{id}/reviews",
        "GET /v1/products/{id}/reviews/{customer}",
        "GET /v1/reviews/recent",
        "GET /v1/search/products",
        "GET /v1/search/suggestions",
        "GET /v1/settings",
        "GET /v1/shipping/countries",
        "POST /v1/carts",
        "POST /v1/carts/{id}/checkout",
        "POST /v1/carts/{id}/quote",
        "POST /v1/counters/{name}",
        "POST /v1/guest/orders/{id}/payments",
        "POST /v1/guest/orders/{id}/status",
        "POST /v1/products/{id}/views",
        "POST /v1/webhooks/stripe",
        "PUT /v1/carts/{id}/items/{product}",
    ];
    assert_eq!(public, expected.iter().map(|&key| key.to_owned()).collect());
    assert!(template.routes.len() >= 47, "{} routes", template.routes.len());
}

#[test]
fn one_parameter_combines_the_stream_consumers_into_one_function() {
    let deployment = local().parameter("FoldStreamConsumers", "true");
    let template = Template::read_for(&real_path(), &deployment).unwrap();
    assert!(template.function("StreamSearch").is_none());
    let events = template.function("StreamEvents").unwrap();
    assert_eq!(events.environment["SINKS"], "search,bus,audit,derived");
    assert_eq!(events.environment["SEARCH_ENDPOINT"], "http://127.0.0.1:9200");
    assert!(events.may("es:ESHttpPost", "/_bulk"));
    assert_eq!(template.streams.len(), 1);
    let images = template.streams[0].filters[0]["dynamodb"]["NewImage"]["entity"]["S"].as_array().unwrap();
    assert!(images.contains(&json!("Product")) && images.contains(&json!("Order")));
}

#[test]
fn a_parameter_without_a_value_is_refused_where_it_is_used() {
    let error = Template::read_for(&real_path(), &Deployment::new("r", "a")).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("CursorKeysSecret has no value"), "{message}");
    assert!(message.contains("Customers.Properties.Environment.Variables"), "{message}");
    assert!(error.line().is_some());
}

#[test]
fn an_unknown_parameter_is_refused() {
    let deployment = Deployment::new("r", "a").parameter("Speling", "x");
    let error = Template::read_for(&real_path(), &deployment).unwrap_err();
    assert!(error.to_string().contains("no parameter Speling"));
}

#[test]
fn a_parameter_must_have_an_allowed_value() {
    let deployment = Deployment::new("r", "a").parameter("FoldStreamConsumers", "yes");
    let error = Template::read_for(&real_path(), &deployment).unwrap_err();
    assert!(error.to_string().contains("FoldStreamConsumers: must be true or false, not yes"), "{error}");
}

#[test]
fn the_small_template_is_read() {
    let template = small("3", "3").unwrap();
    let route = &template.routes[0];
    assert_eq!(route.key(), "GET /v1/things/{id}");
    assert_eq!(route.authorizer.as_deref(), Some("Jwt"));
    assert_eq!(template.functions[0].environment["LEVEL"], "l");
}

#[test]
fn the_long_form_of_intrinsic_functions_equals_the_short_form() {
    let template = small("!If [Low, l, h]", "{'Fn::If': [Low, {Ref: Level}, h]}").unwrap();
    assert_eq!(template.functions[0].environment["LEVEL"], "low");
    let template = small("!If [Low, l, h]", "{'Fn::Join': ['-', [a, !Ref Level]]}").unwrap();
    assert_eq!(template.functions[0].environment["LEVEL"], "a-low");
}

#[test]
fn sub_replaces_attributes_and_keeps_escaped_text() {
    let pattern = "!Sub '${Table.Arn}/${!kept}/${AWS::Region}'";
    let template = small("!If [Low, l, h]", pattern).unwrap();
    assert_eq!(template.functions[0].environment["LEVEL"], "arn:aws:dynamodb:r:a:table/Table/${kept}/r");
}

#[test]
fn sub_prefers_its_own_variables() {
    let pattern = "!Sub ['${Level}/${Own}/${Table.Arn}', {Level: mine, Own: !If [Low, !Ref Level, h]}]";
    let template = small("!If [Low, l, h]", pattern).unwrap();
    assert_eq!(template.functions[0].environment["LEVEL"], "mine/low/arn:aws:dynamodb:r:a:table/Table");
}

#[test]
fn a_false_condition_leaves_a_function_and_its_routes_out() {
    let template =
        small("    Type: AWS::Serverless::Function\n", "    Type: AWS::Serverless::Function\n    Condition: High\n");
    assert!(template.unwrap_err().to_string().contains("no condition High"));
    let text = SMALL
        .replace("    Type: AWS::Serverless::Function\n", "    Type: AWS::Serverless::Function\n    Condition: Low\n");
    let deployment = Deployment::new("r", "a").parameter("Level", "high");
    let template = Template::parse_for(&text, &deployment).unwrap();
    assert!(template.functions.is_empty() && template.routes.is_empty());
}

#[test]
fn an_error_contains_its_line_and_its_path_in_the_template() {
    let cases = [
        ("Timeout: 3", "Timeout: 901", "20: One.Properties.Timeout: must be a number from 1 to 900"),
        ("Timeout: 3", "Timeout: [3]", "20: One.Properties.Timeout: must be a text, not a list"),
        ("      Timeout: 3\n", "", "Timeout is missing"),
        ("!Ref Api", "!Ref Nothing", "there is no parameter or resource Nothing"),
        ("Method: get", "Method: gett", "GETT is not a method"),
        ("'/v1/things/{id}'", "'/v1/{id+}'", "is not a path"),
        ("'/v1/things/{id}'", "'v1'", "is not a path"),
        ("Type: HttpApi", "Type: Timer", "events of type Timer are not supported"),
        ("Path: '/v1/things/{id}'", "Path: /v1, Speed: 3", "Speed: this property is not supported"),
        ("Authorizers: {Jwt: ", "Authorizers: {Other: ", "the API has no authorizer Jwt"),
        ("LEVEL: !If [Low, l, h]", "LEVEL: !If [Low, l]", "If takes a condition and two values"),
        ("LEVEL: !If [Low, l, h]", "LEVEL: !Base64 x", "Base64 is not supported here"),
        ("LEVEL: !If [Low, l, h]", "LEVEL: !Ref Secret", "the parameter Secret has no value"),
        ("LEVEL: !If [Low, l, h]", "LEVEL: !Sub '${Level'", "has a ${ without its }"),
        ("LEVEL: !If [Low, l, h]", "LEVEL: !Sub ['${Level}']", "Sub takes a text and a map of variables"),
        ("LEVEL: !If [Low, l, h]", "LEVEL: !GetAtt Api.Arn", "Api.Arn is not supported"),
        ("!Equals [!Ref Level, low]", "!Condition Low", "the condition Low refers to itself"),
        ("LEVEL: !If [Low, l, h]", "LEVEL: !Ref \"No\\nsuch\"", "there is no parameter or resource No such"),
        ("KeyType: RANGE", "KeyType: SORT", "must be HASH or RANGE, not SORT"),
        ("AttributeName: B, KeyType", "AttributeName: C, KeyType", "C is not among AttributeDefinitions"),
        ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "there is no AWS::DynamoDB::Table"),
        ("Handler: bootstrap", "Handler: bootstrap\n      Handler: other", "20: the key Handler is defined twice"),
        ("CodeUri: functions/one", "CodeUri: &x functions/one\n      Description: *x", "aliases are not supported"),
        ("Resources:", "Resourcez:", "Resources is missing"),
    ];
    for (from, to, expected) in cases {
        let message = refusal(from, to);
        assert!(message.contains(expected), "{to:?} gave {message:?}");
        assert!(!message.contains('\n'), "{message:?} is more than one line");
    }
}

#[test]
fn two_routes_that_cannot_be_told_apart_are_refused() {
    let twice = "'/v1/things/{id}'}}
        Again: {Type: HttpApi, Properties: {ApiId: !Ref Api, Method: GET, Path: '/v1/things/{other}'}}";
    let message = refusal("'/v1/things/{id}'}}", twice);
    assert!(message.contains("GET /v1/things/{other} is also a route of One"), "{message}");
}

#[test]
fn invalid_yaml_is_refused_with_its_line() {
    let error = Template::parse_for("a: b\n c: [", &Deployment::new("r", "a")).unwrap_err();
    assert!(error.to_string().contains("not YAML"), "{error}");
    assert!(error.line().is_some());
    let nested = "[".repeat(200);
    assert!(Template::parse_for(&nested, &Deployment::new("r", "a")).is_err());
    assert!(Template::parse_for("", &Deployment::new("r", "a")).is_err());
}

#[test]
fn the_error_for_a_missing_file_contains_its_name() {
    let error = Template::read("no/such/template.yaml".as_ref()).unwrap_err();
    assert!(error.to_string().starts_with("no/such/template.yaml: cannot be read"));
}

#[test]
fn plain_yaml_becomes_json() {
    let json = parse_yaml("a: 1\nb: [true, '1', ~, x y]\nc: [12.5, '12.5', 0.1.0, 2017-01-01]\n").unwrap();
    assert_eq!(json, json!({"a": 1, "b": [true, "1", null, "x y"], "c": [12.5, "12.5", "0.1.0", "2017-01-01"]}));
    assert!(parse_yaml("a: !Ref b").is_err());
}

/// Returns a template with this many conditions. Each condition refers to the next condition twice.
fn needing_one_another(conditions: usize) -> Result<Template, TemplateError> {
    let chain = (0..conditions).map(|n| format!("C{n}: !And [!Condition C{0}, !Condition C{0}]\n  ", n + 1));
    let rest = format!("C{conditions}: !Equals [1, 1]\n  Low: !Condition C0");
    small("Low: !Equals [!Ref Level, low]", &(chain.collect::<String>() + &rest))
}

#[test]
fn each_condition_is_evaluated_once_even_if_it_is_used_repeatedly() {
    assert!(needing_one_another(50).is_ok());
    let endless = needing_one_another(10_000).unwrap_err().to_string();
    assert!(endless.contains("is nested too deeply"), "{endless}");
}
