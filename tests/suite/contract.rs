//! Compares `openapi.yaml` with the routes of the template and the functions, and with the error
//! codes and bounds in the source code.

mod generated;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};

use http_api::Code;
use serde_json::{Value as Json, json};

use crate::patterns::users;
use crate::support::openapi::{Operation, api};
use crate::support::{root, schema, template};

/// Returns the routes that a public specification describes instead of `openapi.yaml`.
fn protocols() -> BTreeSet<&'static str> {
    let operations = generated::functions().into_iter().flat_map(|(_, operations)| operations);
    operations.filter(|operation| operation.spec.is_some()).map(|operation| operation.key).collect()
}

#[test]
fn the_description_and_the_template_and_the_functions_have_the_same_routes() {
    let template = template();
    let described: BTreeSet<String> = api().operations().map(Operation::key).collect();
    let deployed = template
        .routes
        .iter()
        .map(|route| (route.key(), template.function(&route.function).unwrap().crate_name().to_owned()));
    let deployed: BTreeMap<String, String> = deployed.collect();
    let mut answered = BTreeMap::new();
    for user in users().iter().filter(|user| user.is_route()) {
        let other = answered.insert(user.name.to_owned(), user.package.to_owned());
        assert_eq!(other, None, "{} is a route of two functions", user.name);
    }
    let protocols = protocols().into_iter().map(str::to_owned);
    let described: BTreeSet<String> = described.into_iter().chain(protocols).collect();
    assert_eq!(described.iter().collect::<Vec<_>>(), deployed.keys().collect::<Vec<_>>());
    assert_eq!(deployed, answered);
}

#[test]
fn a_route_needs_a_token_exactly_where_the_template_requires_one() {
    for route in template().routes.into_iter().filter(|route| !protocols().contains(route.key().as_str())) {
        let operation = api().operation(&route.key()).unwrap();
        let who = operation.who();
        assert_eq!(operation.is_secured(), route.authorizer.is_some(), "{route}");
        assert_eq!(operation.is_secured(), who != "any", "{route}");
        let known = ["any", "signed in", "customer", "reader", "editor", "owner", "staff"];
        assert!(known.contains(&who), "{route}");
    }
}

/// Caches may keep the pages of public routes. A guest's cart or order is private, although it needs no
/// caller's token.
#[test]
fn a_route_is_public_exactly_where_it_reads_without_a_token() {
    let is_page =
        |operation: &Operation<'_>| operation.method == "GET" && operation.who() == "any" && !operation.takes_secret();
    let described: BTreeSet<String> = api().operations().filter(is_page).map(Operation::key).collect();
    let answered: BTreeSet<String> = [
        customers::routes().public_keys().collect::<Vec<_>>(),
        catalog::routes().public_keys().collect(),
        orders::routes().public_keys().collect(),
        wallet::routes().public_keys().collect(),
        community::routes().public_keys().collect(),
        organizations::routes().public_keys().collect(),
        documents::routes().public_keys().collect(),
        insights::routes().public_keys().collect(),
        ::support::routes().public_keys().collect(),
        settings::routes().public_keys().collect(),
        search::routes().public_keys().collect(),
        agents::routes().public_keys().filter(|key| !protocols().contains(*key)).collect(),
    ]
    .concat()
    .into_iter()
    .map(str::to_owned)
    .collect();
    assert_eq!(described, answered);
}

#[test]
fn the_callers_of_each_route_are_the_same_in_the_patterns_and_in_the_description() {
    let users = users();
    for user in users.iter().filter(|user| user.is_route() && !protocols().contains(user.name)) {
        let (key, operation) = (user.name, api().operation(user.name).unwrap());
        // The patterns call each of these kinds of callers `owner`.
        let who = match operation.who() {
            "customer" | "reader" | "editor" => "owner",
            other => other,
        };
        // A pattern that several routes use names the callers of the most permissive route.
        let widest =
            |who: &str| ["staff", "owner", "signed in", "any", "system"].iter().position(|known| *known == who);
        for pattern in &user.patterns {
            assert!(
                users.iter().filter(|user| user.is_route() && user.patterns.contains(pattern)).count() > 1
                    || widest(pattern.callers) == widest(who)
                    || (who, pattern.callers) == ("owner", "signed in")
                    // A route of owners may also use a pattern whose callers are `staff`.
                    || (who, pattern.callers) == ("owner", "staff"),
                "{key} is for {who}, its pattern {} for {}",
                pattern.id,
                pattern.callers
            );
        }
    }
}

#[test]
fn the_description_lists_exactly_the_error_codes_of_the_functions() {
    let listed = &api().schema("Problem")["properties"]["code"]["enum"];
    let known: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    assert_eq!(listed, &json!(known));
}

#[test]
fn the_codes_of_a_response_agree_with_its_status() {
    for operation in api().operations() {
        for (status, response) in operation.responses().filter(|(status, _)| !status.starts_with(['2', '3'])) {
            for name in operation.codes(response) {
                let code = Code::ALL.iter().find(|code| code.name() == name);
                let code = code.unwrap_or_else(|| panic!("{} {status}: {name} is no code", operation.key()));
                let fits = if status == "default" {
                    code.status().is_server_error()
                } else {
                    code.status().as_str() == status
                };
                assert!(fits, "{} {status}: {name} has the status {}", operation.key(), code.status());
            }
        }
    }
}

#[test]
fn every_reference_has_a_target_and_every_component_is_used() {
    fn collect<'a>(node: &'a Json, references: &mut BTreeSet<&'a str>) {
        match node {
            Json::Object(members) => {
                references.extend(members.get("$ref").and_then(Json::as_str));
                members.values().for_each(|member| collect(member, references));
            }
            Json::Array(items) => items.iter().for_each(|item| collect(item, references)),
            _ => {}
        }
    }
    let mut references = BTreeSet::new();
    collect(&api().0, &mut references);
    for reference in &references {
        assert!(api().find(reference).is_some(), "{reference} does not exist");
    }
    for (kind, components) in api().0["components"].as_object().unwrap() {
        for name in components.as_object().unwrap().keys() {
            let reference = format!("#/components/{kind}/{name}");
            assert!(kind == "securitySchemes" || references.contains(reference.as_str()), "{reference} is not used");
        }
    }
}

#[test]
fn every_operation_is_described_in_full() {
    let mut ids = BTreeSet::new();
    for operation in api().operations() {
        let key = operation.key();
        assert!(ids.insert(operation.own["operationId"].as_str().unwrap()), "{key}: another operation has the same id");
        assert!(operation.own["summary"].is_string(), "{key}: no summary");
        let in_path: Vec<&str> =
            operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        let declared: Vec<&str> = operation
            .parameters()
            .filter(|parameter| parameter["in"] == "path")
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        assert_eq!(declared, in_path, "{key}");

        let statuses: BTreeSet<&str> = operation.responses().map(|(status, _)| status).collect();
        let mut needed = vec!["default"];
        needed.extend(operation.is_secured().then_some("401"));
        needed.extend((operation.who() == "staff").then_some("403"));
        needed.extend((!in_path.is_empty()).then_some("422"));
        if operation.body().is_some() {
            needed.extend(["400", "413", "415", "422"]);
        }
        if operation.parameters().any(|parameter| parameter["in"] != "path") {
            needed.push("400");
        }
        if let Some(parameter) = operation.parameters().find(|parameter| parameter["name"] == "If-Match") {
            needed.extend(["404", "412"]);
            needed.extend((parameter["required"] != false).then_some("428"));
        }
        for status in needed {
            assert!(statuses.contains(status), "{key} does not document {status}");
        }
        assert_eq!(
            operation.parameters().any(|parameter| parameter["name"] == "cursor"),
            has_link(operation),
            "{key}: a list has a Link"
        );
        let replays = operation.responses().any(|(status, response)| {
            status < "300" && api().follow(response)["headers"].get("Idempotency-Replayed").is_some()
        });
        assert_eq!(
            operation.parameters().any(|parameter| parameter["name"] == "Idempotency-Key"),
            replays,
            "{key}: a repeated response has Idempotency-Replayed"
        );
        let created = operation.response(201);
        let located = api().follow(created)["headers"].get("Location").is_some();
        assert!(!statuses.contains("201") || located, "{key}: the response 201 has no Location");
    }
}

/// An operation's tag is the client's task, so that readers find the operation by the task.
#[test]
fn every_operation_belongs_to_one_task_and_every_task_to_one_group_of_readers() {
    let mut tasks = BTreeMap::new();
    for task in api().0["tags"].as_array().unwrap() {
        let name = task["name"].as_str().unwrap();
        assert!(task["description"].as_str().is_some_and(|text| text.ends_with('.')), "{name}");
        assert_eq!(tasks.insert(name, 0), None, "{name} is listed twice");
    }
    for operation in api().operations() {
        let Some([task]) = operation.own["tags"].as_array().map(Vec::as_slice) else { panic!("{}", operation.key()) };
        let task = task.as_str().unwrap();
        *tasks.get_mut(task).unwrap_or_else(|| panic!("{}: {task} is not listed", operation.key())) += 1;
    }
    assert!(tasks.values().all(|operations| *operations > 0), "{tasks:?}");
    let groups = api().0["x-tagGroups"].as_array().unwrap();
    let mut grouped: Vec<_> = groups.iter().flat_map(|group| group["tags"].as_array().unwrap()).collect();
    grouped.sort_by_key(|task| task.as_str());
    assert_eq!(json!(grouped), json!(tasks.into_keys().collect::<Vec<_>>()));
}

fn has_link(operation: Operation<'_>) -> bool {
    api().follow(operation.response(200)).get("headers").is_some_and(|headers| headers.get("Link").is_some())
}

#[test]
fn every_body_has_an_example_and_every_example_matches_its_schema() {
    for operation in api().operations() {
        let answers = operation.responses().flat_map(|(_, response)| {
            let content = api().follow(response).get("content").and_then(Json::as_object);
            let without = |media: &&Json| media.get("example").is_none() && media.get("examples").is_none();
            content.into_iter().flatten().map(|(_, media)| media).filter(without).map(|media| &media["schema"])
        });
        for body in operation.body().into_iter().chain(answers) {
            let examples = api().follow(body)["examples"].as_array();
            assert!(examples.is_some_and(|examples| !examples.is_empty()), "{}: no example of {body}", operation.key());
        }
    }
    for (name, schema) in api().0["components"]["schemas"].as_object().unwrap() {
        for example in schema.get("examples").and_then(Json::as_array).into_iter().flatten() {
            assert_eq!(schema::breaches(api(), schema, example, true), Vec::<String>::new(), "{name}");
            // A new guest cart has no lines yet.
            let is_empty_page = name != "NewGuestCart" && example.get("items").is_some_and(|items| items == &json!([]));
            assert!(!is_empty_page, "{name}: a page without an entry shows nothing");
        }
    }
}

#[test]
fn every_example_of_an_error_has_the_status_and_a_code_of_its_response() {
    let mut seen = BTreeSet::new();
    for operation in api().operations() {
        for (status, response) in operation.responses().filter(|(status, _)| !status.starts_with(['2', '3'])) {
            let content = api().follow(response)["content"].as_object().unwrap();
            for (kind, media) in content {
                let several = media.get("examples").and_then(Json::as_object).into_iter().flatten();
                let examples: Vec<&Json> = media
                    .get("example")
                    .into_iter()
                    .chain(several.map(|(_, example)| &api().follow(example)["value"]))
                    .collect();
                assert!(!examples.is_empty(), "{} {status}: no example of {kind}", operation.key());
                for example in examples {
                    let breaches = schema::breaches(api(), &media["schema"], example, true);
                    assert_eq!(breaches, Vec::<String>::new(), "{} {status}", operation.key());
                    let Some(name) = example["code"].as_str() else { continue };
                    let code = Code::ALL.iter().find(|code| code.name() == name).unwrap();
                    assert_eq!(example["status"], code.status().as_u16(), "{name}");
                    assert_eq!(example["type"], format!("urn:bodega:problem:{name}"));
                    assert!(
                        status == "default" || status == code.status().as_str(),
                        "{name} is an example of {status}"
                    );
                    seen.insert(name);
                }
            }
        }
    }
    assert!(seen.len() > 15, "{seen:?}");
}

#[test]
fn the_constants_in_the_code_equal_the_described_bounds() {
    use key_schema::{
        cart, counter, cursor, customer, document, graph, guest_cart, id, metric, order, organization, picture,
        product, question, variant, wallet,
    };

    let schema =
        |pointer: &str| api().0["components"]["schemas"].pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
    let limit = &api().0["components"]["parameters"]["Limit"]["schema"];
    let status: Vec<&str> = order::OrderStatus::VISIBLE.iter().map(|status| status.as_str()).collect();
    let tiers: Vec<&str> = customer::Tier::ALL.iter().map(|tier| tier.as_str()).collect();
    let edges: Vec<&str> = graph::EdgeKind::ALL.iter().map(|kind| kind.as_str()).collect();
    let kinds: Vec<&str> = wallet::EntryKind::ALL.iter().map(|kind| kind.as_str()).collect();
    let states: Vec<&str> = question::QuestionStatus::ALL.iter().map(|status| status.as_str()).collect();
    let roles: Vec<&str> = organization::Role::ALL.iter().map(|role| role.as_str()).collect();
    for (described, named) in [
        (&limit["maximum"], json!(http_api::MAX_LIMIT)),
        (&limit["default"], json!(http_api::DEFAULT_LIMIT)),
        (schema("/Id/maxLength"), json!(id::MAX_ID_BYTES)),
        (schema("/NextCursor/maxLength"), json!(cursor::MAX_CURSOR_BYTES)),
        (schema("/Quote/properties/id/maxLength"), json!(cursor::MAX_SEALED_BYTES)),
        (schema("/Checkout/properties/quote_id/maxLength"), json!(cursor::MAX_SEALED_BYTES)),
        (schema("/FieldError/properties/reason/enum"), json!(http_api::Reason::ALL)),
        (schema("/IdempotencyKey/maxLength"), json!(http_api::MAX_IDEMPOTENCY_KEY)),
        (schema("/Price/properties/amount/maximum"), json!(http_api::fields::MAX_AMOUNT)),
        (schema("/Quantity/maximum"), json!(order::MAX_QUANTITY)),
        (schema("/Pieces/maximum"), json!(product::MAX_STOCK)),
        (schema("/CategoryNames/maxItems"), json!(product::MAX_CATEGORY_DEPTH)),
        (schema("/ProductIds/maxItems"), json!(product::MAX_IDS)),
        (schema("/PictureList/properties/items/maxItems"), json!(picture::MAX_PICTURES)),
        (schema("/Product/properties/variants/maxItems"), json!(variant::MAX_VARIANTS)),
        (schema("/Options/maxProperties"), json!(variant::MAX_OPTIONS)),
        (schema("/Options/additionalProperties/maxLength"), json!(variant::MAX_OPTION_VALUE_BYTES)),
        (schema("/Customer/properties/addresses/maxProperties"), json!(customer::MAX_ADDRESSES)),
        (schema("/Overview/properties/orders/maxItems"), json!(customer::OVERVIEW_ORDERS)),
        (schema("/Cart/properties/items/maxItems"), json!(cart::MAX_LINES)),
        (schema("/GuestCart/properties/items/maxItems"), json!(guest_cart::MAX_LINES)),
        (schema("/NewOrder/properties/lines/maxItems"), json!(order::MAX_LINES)),
        (schema("/OrderStatus/enum"), json!(status)),
        (schema("/Tier/enum"), json!(tiers)),
        (schema("/MovedMoney/properties/amount/maximum"), json!(http_api::fields::MAX_AMOUNT)),
        (schema("/Balance/properties/amount/maximum"), json!(wallet::MAX_BALANCE)),
        (schema("/EntryKind/enum"), json!(kinds)),
        (schema("/EdgeKind/enum"), json!(edges)),
        (schema("/QuestionStatus/enum"), json!(states)),
        (schema("/Question/properties/answer_count/maximum"), json!(question::MAX_ANSWERS)),
        (schema("/AnsweredQuestion/properties/answers/maxItems"), json!(question::MAX_ANSWERS)),
        (schema("/SupportOverview/properties/questions/maxItems"), json!(question::SUPPORT_QUESTIONS)),
        (schema("/NewMetrics/properties/points/maxItems"), json!(metric::MAX_POINTS)),
        (schema("/CounterAddition/properties/add/maximum"), json!(counter::MAX_ADD)),
        (schema("/ShardCount/maximum"), json!(counter::MAX_SHARDS)),
        (schema("/Role/enum"), json!(roles)),
        (schema("/Organization/properties/teams/maxItems"), json!(organization::MAX_TEAMS)),
        (schema("/NewDocument/properties/sections/maxProperties"), json!(document::MAX_SECTIONS)),
        (schema("/SectionContent/maxLength"), json!(document::MAX_TEXT)),
        (schema("/Document/properties/editors/maxItems"), json!(document::MAX_EDITORS)),
    ] {
        assert_eq!(*described, named);
    }
}

#[test]
fn every_write_that_a_customer_may_send_has_a_row_with_its_bound_in_limits_md() {
    let page = std::fs::read_to_string(root().join("docs/design/limits.md")).unwrap();
    let section = page.split_once("## What a customer can write\n").unwrap().1.split("\n## ").next().unwrap();
    let mut listed = Vec::new();
    for row in section.lines().filter(|line| line.starts_with('|')).skip(2) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [routes, attempt, bound] = cells.as_slice() else { panic!("{row}") };
        assert!(!attempt.is_empty() && !bound.is_empty(), "{row}");
        listed.extend(routes.split("<br>").map(|route| route.trim_matches('`').to_owned()));
    }
    listed.sort_unstable();
    let writes = api().operations().filter(|operation| operation.method != "GET" && operation.who() != "staff");
    let mut writes: Vec<String> = writes.map(|operation| operation.key()).collect();
    writes.sort_unstable();
    assert_eq!(listed, writes);
}
