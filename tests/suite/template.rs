//! Compares `template.yaml` with the code: the table, the permissions and the timeouts.

mod watch;

use std::collections::{BTreeMap, BTreeSet};

use ::template::{Function, Projection};
use key_schema::entity::AnyEntity;
use key_schema::index::INDEXES;
use key_schema::item::RESERVED;
use key_schema::key::Index;
use key_schema::pattern::{Operation, Pattern};
use key_schema::revocation::LIFETIME_SECONDS;
use serde_json::{Value as Json, json};
use stream_poller::Filter;

use crate::patterns::{User, users};
use crate::support::openapi::api;
use crate::support::{read, root, template};

#[test]
fn the_table_is_the_one_that_the_schema_describes() {
    let table = template().table;
    assert_eq!((table.key.partition.as_str(), table.key.sort.as_str()), ("PK", "SK"));
    assert_eq!(table.stream_view.as_deref(), Some("NEW_AND_OLD_IMAGES"));
    let ttl = table.ttl_attribute.unwrap();
    assert!(ttl == "ttl" && RESERVED.contains(&ttl.as_str()));

    let names: Vec<&str> = table.indexes.iter().map(|index| index.name.as_str()).collect();
    assert_eq!(names, INDEXES.map(Index::name));
    let mut keys = BTreeSet::from(["PK", "SK"]);
    for (deployed, index) in table.indexes.iter().zip(INDEXES) {
        assert_eq!(deployed.key.partition, index.partition_attribute());
        assert_eq!(deployed.key.sort, index.sort_attribute());
        let projected: Vec<String> = index.projected().iter().map(ToString::to_string).collect();
        assert_eq!(deployed.projection, Projection::Include(projected), "{}", index.name());
        keys.extend([index.partition_attribute(), index.sort_attribute()]);
    }
    let defined: BTreeSet<&str> = table.attribute_types.keys().map(String::as_str).collect();
    assert_eq!(defined, keys);
    assert!(table.attribute_types.values().all(|kind| kind == "S"));
}

#[test]
fn no_function_is_granted_a_scan_or_a_wildcard_action() {
    for function in template().functions {
        for statement in function.statements.iter().filter(|statement| statement.allow) {
            for action in &statement.actions {
                assert!(action != "dynamodb:Scan" && !action.contains('*'), "{}: {action}", function.logical_id);
                // A function that asks for the table's description at its start does not start when
                // the answer is missing or unreadable.
                assert!(action != "dynamodb:DescribeTable", "{}: {action}", function.logical_id);
            }
        }
    }
}

#[test]
fn a_function_may_do_exactly_the_actions_of_its_access_patterns() {
    for function in template().functions {
        let (granted, mut useful) = (granted(&function), BTreeSet::new());
        for pattern in patterns(&function) {
            let place = pattern.index.map_or_else(|| "table".to_owned(), |index| format!("index/{}", index.name()));
            let actions = pattern.operation.actions().iter().map(|action| (*action, place.clone()));
            let actions: BTreeSet<(&str, String)> = actions.collect();
            // A pattern does not list which kinds of writes its transaction contains. So it
            // suffices that the function is granted one of the kinds.
            let suffices = match pattern.operation {
                Operation::TransactWriteItems => !actions.is_disjoint(&granted),
                _ => actions.is_subset(&granted),
            };
            assert!(suffices, "{} lacks actions that {} needs: {actions:?}", function.logical_id, pattern.id);
            useful.extend(actions);
        }
        let useless: Vec<_> = granted.difference(&useful).collect();
        assert!(useless.is_empty(), "{} has unused actions: {useless:?}", function.logical_id);
    }
}

/// Returns the access patterns of a function. A consumer with no other sink than `search` has no
/// access patterns. A function with routes also has the patterns of `http-api`. This crate reads
/// the table when the function starts, and for each token that names a sign-in.
fn patterns(function: &Function) -> Vec<&'static Pattern> {
    let has_routes = template().routes.iter().any(|route| route.function == function.logical_id);
    let reaches = has_routes && function.environment.contains_key("TABLE_NAME");
    let only_indexes = function.environment.get("SINKS").is_some_and(|sinks| sinks == "search");
    let is_own = |user: &User| user.package == function.crate_name() || (reaches && user.package == "http-api");
    users().into_iter().filter(|user| !only_indexes && is_own(user)).flat_map(|user| user.patterns).collect()
}

/// An action on the table itself, not on items. With it, the splitter finds the Contributor
/// Insights rule that counts throttled keys.
const DESCRIBE: &str = "dynamodb:DescribeContributorInsights";

/// Returns the function's actions on items, each with the place of the grant: `table` or an index.
fn granted(function: &Function) -> BTreeSet<(&str, String)> {
    let mut granted = BTreeSet::new();
    for statement in function.statements.iter().filter(|statement| statement.allow) {
        let on_items = |action: &&String| action.starts_with("dynamodb:") && action.as_str() != DESCRIBE;
        for action in statement.actions.iter().filter(on_items) {
            // Access to the stream is left out, because only the event source mapping needs it.
            for resource in statement.resources.iter().filter(|resource| !resource.contains("/stream/")) {
                let place = match resource.split_once("/index/") {
                    Some((_, index)) => format!("index/{index}"),
                    None => "table".to_owned(),
                };
                granted.insert((action.as_str(), place));
            }
        }
    }
    granted
}

#[test]
fn a_call_to_the_table_times_out_before_the_function_does() {
    for function in template().functions {
        assert!(function.timeout > table::OPERATION_TIMEOUT, "{}", function.logical_id);
    }
}

/// A token that a client gets by a refresh belongs to the original sign-in, so the revocation must
/// also end that token.
#[test]
fn a_revocation_lasts_longer_than_any_token_of_the_sign_in() {
    let clients = resources("AWS::Cognito::UserPoolClient");
    let client = &clients["UserPoolClient"];
    let number = |name: &str| -> i64 {
        let line = client.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
    };
    assert!(client.contains("TokenValidityUnits: {AccessToken: minutes, IdToken: minutes, RefreshToken: days}"));
    // Without this setting, tokens have no `origin_jti`.
    assert!(client.contains("EnableTokenRevocation: true"));
    let token = number("AccessTokenValidity").max(number("IdTokenValidity"));
    let longest = number("RefreshTokenValidity") * 24 * 60 * 60 + token * 60;
    assert!(LIFETIME_SECONDS > longest, "a revocation lasts {LIFETIME_SECONDS} s, and a sign-in {longest} s");
}

/// The function that began to place an order may continue until the function's timeout. So the
/// janitor's grace period must be longer than that timeout.
#[test]
fn the_janitor_leaves_orders_alone_for_longer_than_placing_one_may_take() {
    let template = template();
    let function = |id: &str| template.functions.iter().find(|function| function.logical_id == id).unwrap();
    let grace: u64 = function("Janitor").environment["JANITOR_GRACE_SECONDS"].parse().unwrap();
    assert!(grace > function("Orders").timeout.as_secs(), "{grace} s");
}

/// A consumer that read the customer before the erasure may archive items until the consumer's
/// timeout.
#[test]
fn the_janitor_deletes_an_erased_customers_archive_only_after_the_timeout_of_the_consumer() {
    let template = template();
    let function = |id: &str| template.functions.iter().find(|function| function.logical_id == id).unwrap();
    let grace: u64 = function("Janitor").environment["JANITOR_GRACE_SECONDS"].parse().unwrap();
    let consumer = function("StreamEvents").timeout.as_secs();
    assert!(2 * grace > consumer + 30, "the archive stays for twice {grace} s, and the consumer may take {consumer} s");
}

#[test]
fn every_entity_in_a_stream_filter_exists() {
    for stream in template().streams {
        assert!(!stream.filters.is_empty(), "{}: nothing is filtered out", stream.function);
        // By default, a mapping may have five patterns of at most 4,096 characters each.
        assert!(stream.filters.len() <= 5 && stream.filters.iter().all(|filter| filter.to_string().len() <= 4096));
        for filter in stream.filters {
            let images = filter["dynamodb"].as_object().unwrap();
            for (image, pattern) in images {
                assert!(["NewImage", "OldImage"].contains(&image.as_str()), "{image}");
                for name in pattern["entity"]["S"].as_array().unwrap() {
                    assert!(AnyEntity::NAMES.contains(&name.as_str().unwrap()), "{name}");
                }
            }
        }
    }
}

#[test]
fn a_consumer_gets_the_records_that_its_sinks_use_and_none_of_its_own_writes() {
    let image = |entity: &str| json!({"entity": {"S": entity}});
    let record = |kind: &str, entity: &str| match kind {
        "INSERT" => json!({"eventName": kind, "dynamodb": {"NewImage": image(entity)}}),
        "REMOVE" => json!({"eventName": kind, "dynamodb": {"OldImage": image(entity)}}),
        _ => json!({"eventName": kind, "dynamodb": {"NewImage": image(entity), "OldImage": image(entity)}}),
    };
    let always = ["INSERT", "MODIFY", "REMOVE"];
    for stream in template().streams {
        let patterns: Vec<String> = stream.filters.iter().map(ToString::to_string).collect();
        let filter = Filter::new(&patterns).unwrap();
        let (changed, created, removed): (&[&str], &[&str], &[&str]) = match stream.function.as_str() {
            "StreamSearch" => (&["Heartbeat", "Order", "Product"], &[], &[]),
            _ => (
                &["Customer", "Heartbeat", "Order", "Product", "Review", "ReviewStats", "Stock"],
                &["EmailVerification", "LikeCount", "ProviderEvent", "Tally"],
                &["Cart", "CustomerOrder", "OrderLine", "OrderStatusEvent", "Payment", "PaymentOperation", "Session"],
            ),
        };
        for entity in AnyEntity::NAMES {
            for kind in always {
                let with_kind = if kind == "REMOVE" { removed } else { created };
                let wanted = changed.contains(entity) || with_kind.contains(entity);
                assert_eq!(filter.matches(&record(kind, entity)), wanted, "{}: {kind} {entity}", stream.function);
            }
        }
        for (attribute, value, is_reversed) in [
            ("refunded", json!({"N": "1"}), true),
            ("status", json!({"S": "cancelled"}), true),
            ("status", json!({"S": "captured"}), false),
        ] {
            let image = json!({"entity": {"S": "Payment"}, attribute: value});
            let change = json!({"eventName": "MODIFY", "dynamodb": {"NewImage": image, "OldImage": image}});
            assert_eq!(filter.matches(&change), is_reversed && stream.function == "StreamEvents", "{image}");
        }
    }
}

#[test]
fn every_function_may_use_exactly_the_resources_in_its_environment() {
    let template = template();
    for function in &template.functions {
        let needs = [
            ("BUS_NAME", "events:PutEvents", "event-bus/Bus"),
            ("FAILED_RECORDS_BUCKET", "s3:PutObject", "FailedRecords/quarantine/*"),
            ("MAIL_CONFIGURATION_SET", "ses:SendEmail", "configuration-set/MailEvents"),
            ("MAIL_FROM", "ses:SendEmail", "identity/${MailIdentity}"),
            ("CURSOR_KEYS_SECRET", "secretsmanager:GetSecretValue", "${CursorKeysSecret}"),
            ("EMAIL_CODE_KEYS_SECRET", "secretsmanager:GetSecretValue", "${EmailCodeKeysSecret}"),
            ("PAYMENT_KEYS_SECRET", "secretsmanager:GetSecretValue", "${PaymentKeysSecret}"),
            ("WEBHOOK_KEYS_SECRET", "secretsmanager:GetSecretValue", "${WebhookKeysSecret}"),
        ];
        for (variable, action, resource) in needs {
            // Without a secret there is no account at a payment provider, or there are no webhooks.
            let has = function.environment.get(variable).is_some_and(|value| !value.is_empty());
            assert_eq!(function.may(action, resource), has, "{}: {action}", function.logical_id);
        }
        // A function with `ARCHIVE_BUCKET` may either put archive objects or delete those of erased
        // customers, but not both.
        let has = function.environment.contains_key("ARCHIVE_BUCKET");
        let may = |action: &str| function.may(action, "Archive/expired/*");
        let (puts, deletes) = (may("s3:PutObject"), may("s3:DeleteObject"));
        assert!(has == (puts || deletes) && !(puts && deletes), "{}", function.logical_id);
        assert_eq!(function.may("s3:ListBucket", "Archive"), deletes, "{}", function.logical_id);
    }
}

#[test]
fn the_rule_of_webhooks_has_the_kinds_that_endpoints_can_want() {
    let template = template();
    let rule = template.rules.iter().find(|rule| rule.logical_id == "WebhookRule").unwrap();
    let matched = rule.pattern["detail-type"].as_array().unwrap();
    let matched: BTreeSet<&str> = matched.iter().map(|kind| kind.as_str().unwrap()).collect();
    let sent = bus::Kind::ALL.iter().filter(|kind| kind.in_webhooks().is_some());
    assert_eq!(matched, sent.map(|kind| kind.as_str()).collect());
}

/// Returns the resources of one type, each with its lines in the template.
pub fn resources(kind: &str) -> BTreeMap<String, String> {
    let text = read(&root().join("template.yaml"));
    let resources = text.split_once("\nResources:\n").unwrap().1.split_once("\nOutputs:\n").unwrap().0;
    let mut found = BTreeMap::<String, String>::new();
    let mut current = String::new();
    for line in resources.lines() {
        let is_name = line.starts_with("  ") && line.ends_with(':') && line.trim_start().len() == line.len() - 2;
        if is_name && !line.trim_start().starts_with('#') {
            current = line.trim().trim_end_matches(':').to_owned();
        }
        if !line.trim_start().starts_with('#') {
            *found.entry(current.clone()).or_default() += &format!("{line}\n");
        }
    }
    found.retain(|_, lines| lines.contains(&format!("\n    Type: {kind}\n")));
    assert!(!found.is_empty(), "there is no {kind}");
    found
}

#[test]
fn the_cors_settings_list_exactly_the_headers_and_methods_that_the_api_describes() {
    let cors = template().cors.unwrap();
    let (mut sent, mut read) =
        (BTreeSet::from(["authorization".to_owned(), "content-type".to_owned()]), BTreeSet::new());
    let named = |parameter: &Json| {
        // No browser sends a webhook.
        let is_sent = parameter["in"] == "header" && parameter["name"] != "Stripe-Signature";
        is_sent.then(|| parameter["name"].as_str().unwrap().to_ascii_lowercase())
    };
    let mut methods = BTreeSet::new();
    for operation in api().operations() {
        methods.insert(operation.method.to_owned());
        sent.extend(operation.parameters().filter_map(named));
        for (_, response) in operation.responses() {
            let headers = api().follow(response)["headers"].as_object();
            read.extend(headers.into_iter().flat_map(|headers| headers.keys().map(|name| name.to_ascii_lowercase())));
        }
    }
    let set = |list: Vec<String>| list.into_iter().collect::<BTreeSet<_>>();
    assert_eq!((set(cors.headers), set(cors.exposed), set(cors.methods)), (sent, read, methods));
}

/// After the redirect from the API to the bucket, a browser sends `Origin: null`.
#[test]
fn every_page_may_read_a_signed_url_and_only_permitted_pages_may_upload() {
    let media = template().buckets.into_iter().find(|bucket| bucket.logical_id == "Media").unwrap();
    let rules: Vec<(Vec<String>, Vec<String>)> =
        media.cors.into_iter().map(|rule| (rule.methods, rule.origins)).collect();
    let list = |text: &str| vec![text.to_owned()];
    assert_eq!(rules, [(list("GET"), list("*")), (list("PUT"), list("https://localhost"))]);
}

#[test]
fn a_resource_with_data_outlives_the_stack_and_is_private() {
    // A retained user pool is useful only with its client and its group, so these are retained too.
    let users = ["AWS::Cognito::UserPool", "AWS::Cognito::UserPoolClient", "AWS::Cognito::UserPoolGroup"];
    for kind in users.into_iter().chain(["AWS::DynamoDB::Table", "AWS::S3::Bucket"]) {
        for (name, lines) in resources(kind) {
            assert!(lines.contains("    DeletionPolicy: Retain\n"), "{name}");
            assert!(lines.contains("    UpdateReplacePolicy: Retain\n"), "{name}");
        }
    }
    for (name, lines) in resources("AWS::S3::Bucket") {
        for needed in [
            "SSEAlgorithm: AES256",
            "BlockPublicAcls: true",
            "BlockPublicPolicy: true",
            "IgnorePublicAcls: true",
            "RestrictPublicBuckets: true",
            "ObjectOwnership: BucketOwnerEnforced",
            "Id: Forget, Status: Enabled",
        ] {
            assert!(lines.contains(needed), "{name}: {needed}");
        }
    }
    // In the bucket `Media`, only pending objects expire. Objects in use never do.
    let media = resources("AWS::S3::Bucket").remove("Media").unwrap();
    let expiring: Vec<&str> = media.lines().filter(|line| line.contains("Expiration")).map(str::trim).collect();
    // Deleted objects remain as long as DynamoDB's point-in-time recovery reaches.
    assert_eq!(
        expiring,
        [
            "- {Id: Forget, Status: Enabled, Prefix: pending/, ExpirationInDays: 1, \
             NoncurrentVersionExpiration: {NoncurrentDays: 1}}",
            "- {Id: ForgetDeleted, Status: Enabled, Prefix: kept/, ExpiredObjectDeleteMarker: true, \
             NoncurrentVersionExpiration: {NoncurrentDays: 35}}",
        ]
    );
    assert!(media.contains("VersioningConfiguration: {Status: Enabled}"));
    for (name, lines) in resources("AWS::SQS::Queue") {
        assert!(lines.contains("SqsManagedSseEnabled: true"), "{name}");
    }
    // The policies of buckets and queues deny requests without TLS.
    for (kind, policy) in [("AWS::S3::Bucket", "AWS::S3::BucketPolicy"), ("AWS::SQS::Queue", "AWS::SQS::QueuePolicy")] {
        let policies = resources(policy);
        let denials: Vec<&str> =
            policies.values().filter_map(|lines| Some(lines.split_once("Effect: Deny\n")?.1)).collect();
        for name in resources(kind).keys() {
            let is_closed = |denial: &&str| {
                denial.contains(&format!("!GetAtt {name}.Arn")) && denial.contains("aws:SecureTransport: 'false'")
            };
            assert!(denials.iter().any(is_closed), "{name}");
        }
    }
    for (name, lines) in resources("AWS::OpenSearchService::Domain") {
        for needed in
            ["EnforceHTTPS: true", "AtRestOptions: {Enabled: true}", "NodeToNodeEncryptionOptions: {Enabled: true}"]
        {
            assert!(lines.contains(needed), "{name}: {needed}");
        }
    }
    for (name, lines) in resources("AWS::Logs::LogGroup") {
        assert!(lines.contains("RetentionInDays: !Ref LogRetentionDays"), "{name}");
    }
    // A changed `Stage` replaces these resources, because their names contain it.
    for kind in ["AWS::Logs::LogGroup", "AWS::Events::EventBus", "AWS::Events::Archive"] {
        for (name, lines) in resources(kind) {
            assert!(lines.contains("    UpdateReplacePolicy: Retain\n"), "{name}");
        }
    }
    let table = resources("AWS::DynamoDB::Table").remove("Table").unwrap();
    for needed in ["PointInTimeRecoveryEnabled: true", "DeletionProtectionEnabled: true"] {
        assert!(table.contains(needed), "{needed}");
    }
    let indexes = template().table.indexes.len();
    // The table and each index must have each of these settings once.
    for needed in ["ContributorInsightsSpecification: {Enabled: true, ", "{MaxReadRequestUnits: !Ref MaxReadUnits, Max"]
    {
        assert_eq!(table.matches(needed).count(), indexes + 1, "{needed}");
    }
}

/// With the lower bounds of auto scaling, a busy table would throttle after the switch to
/// provisioned capacity.
#[test]
fn provisioned_capacity_starts_with_the_initial_capacity() {
    let table = resources("AWS::DynamoDB::Table").remove("Table").unwrap();
    for (number, place) in ["table", "GSI1", "GSI2", "GSI3"].into_iter().enumerate() {
        let units = |kind: &str| format!("{kind}CapacityUnits: !Select [{number}, !Ref Initial{kind}Capacity]");
        assert!(table.contains(&units("Read")) && table.contains(&units("Write")), "{place}");
    }
}

#[test]
fn a_restored_table_is_imported_as_the_table_of_the_template() {
    let only = |text: &str| -> Vec<String> {
        let lines = text.lines().skip_while(|line| *line != "  Table:").skip(1);
        let lines = lines.take_while(|line| line.starts_with("   ") || line.is_empty());
        // A restored table does not have these settings. So the import must not contain them, and
        // the update after the import adds them. The last two texts of the list begin the lines of
        // the provisioned capacity.
        let added = ["OnDemandThroughput", "ContributorInsights", "ProvisionedThroughput:", "!If [Provisioned, {"];
        let later = |line: &str| added.iter().any(|name| line.contains(name));
        let kept = |line: &&str| !line.trim_start().starts_with('#') && !later(line) && !line.is_empty();
        let on_demand = |line: &str| line.replace("!If [Provisioned, PROVISIONED, PAY_PER_REQUEST]", "PAY_PER_REQUEST");
        lines.filter(kept).map(on_demand).collect()
    };
    let restored = only(&read(&root().join("docs/restored-table.yaml")));
    assert!(!restored.is_empty());
    assert_eq!(restored, only(&read(&root().join("template.yaml"))));
}

/// The decisions are in docs/design/decisions.md.
#[test]
fn the_template_has_nothing_that_was_decided_against() {
    let template = read(&root().join("template.yaml"));
    let types = ["GlobalTable", "MultiRegionConsistency", "::DAX::", "::ElastiCache::", "::MemoryDB::"];
    for name in types.into_iter().chain(["LocalSecondaryIndexes"]) {
        assert!(!template.contains(name), "{name}");
    }
    assert_eq!(template.matches("- IndexName: ").count(), 3);
}
