//! Tests `template.yaml` from an operator's view: parameters, users, permissions, idle costs and
//! releases.

mod release;

use std::collections::BTreeSet;

use key_schema::order::open::PENDING_MINUTES;
use key_schema::picking::MAX_STATIONS;
use key_schema::product::MAX_STOCK;
use regex::Regex;
use search_index::SearchConfig;
use serde_json::{Map, Value as Json, json};

use crate::support::client::Call;
use crate::support::openapi::api;
use crate::support::{drain, read, root, shop, template, with_parameter};
use crate::template::resources;

fn parameters() -> Map<String, Json> {
    let text = read(&root().join("template.yaml"));
    let (_, after) = text.split_once("\nParameters:\n").unwrap();
    // The next section starts in the first column.
    let lines: String = after
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with(' '))
        .fold(String::new(), |text, line| text + line + "\n");
    let Json::Object(parameters) = ::template::parse_yaml(&lines).unwrap() else { panic!("no parameters") };
    assert!(parameters.len() > 25, "{}", parameters.len());
    parameters
}

fn text(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns a parameter's pattern. CloudFormation matches the whole value.
fn pattern(parameter: &Json) -> Regex {
    let pattern = parameter["AllowedPattern"].as_str().expect("a pattern");
    Regex::new(&format!("^(?:{pattern})$")).unwrap()
}

/// Checks that the parameter's pattern and the code accept the same samples.
fn agrees(name: &str, parameter: &Json, samples: &[&str], takes: impl Fn(&str) -> bool) {
    let pattern = pattern(parameter);
    for sample in samples {
        assert_eq!(pattern.is_match(sample), takes(sample), "{name}: {sample:?}");
    }
    let taken = samples.iter().filter(|sample| takes(sample)).count();
    assert!(taken > 0 && taken < samples.len(), "{name}: the code accepts all samples or none");
}

#[test]
fn every_parameter_accepts_the_values_that_the_code_accepts() {
    for (name, parameter) in parameters() {
        let bounds = (parameter["MinValue"].as_u64(), parameter["MaxValue"].as_u64());
        let allowed: Vec<String> = parameter["AllowedValues"].as_array().into_iter().flatten().map(text).collect();
        match name.as_str() {
            "PickingStations" => assert_eq!(bounds, (Some(1), Some(MAX_STATIONS as u64)), "{name}"),
            "PendingOrderMinutes" => {
                assert_eq!(bounds, (Some(*PENDING_MINUTES.start()), Some(*PENDING_MINUTES.end())), "{name}");
            }
            "StockLowThreshold" => assert_eq!(bounds, (Some(0), Some(MAX_STOCK)), "{name}"),
            // The secrets themselves are not in the template.
            "CursorKeysSecret" | "EmailCodeKeysSecret" => {
                let samples = [
                    "arn:aws:secretsmanager:eu-central-1:123456789012:secret:bodega-dev-cursor-keys-1-AbCdEf",
                    "arn:aws:ssm:eu-central-1:123456789012:parameter/bodega",
                    "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
                ];
                agrees(&name, &parameter, &samples, |arn| arn.contains(":secret:"));
            }
            // Without an account there are no card payments, and without keys no webhooks.
            "PaymentKeysSecret" | "WebhookKeysSecret" => {
                let samples = [
                    "arn:aws:secretsmanager:eu-central-1:123456789012:secret:bodega-dev-payments-AbCdEf",
                    "",
                    "sk_live_1",
                ];
                agrees(&name, &parameter, &samples, |arn| arn.is_empty() || arn.contains(":secret:"));
            }
            "PaymentProviderUrl" => {
                let samples = ["https://api.stripe.com", "http://127.0.0.1:12111", "api.stripe.com", ""];
                agrees(&name, &parameter, &samples, |url| url.starts_with("http"));
            }
            "SearchEndpoint" => {
                let samples = [
                    "https://search.example.com",
                    "https://x1.eu-central-1.aoss.amazonaws.com/",
                    "http://127.0.0.1:9200",
                    "https://search.example.com/path",
                    "search.example.com",
                    "ftp://search.example.com",
                ];
                agrees(&name, &parameter, &samples, |url| SearchConfig::new(url, "bodega").is_ok());
            }
            "SearchIndexPrefix" => {
                let samples = ["bodega", "a", "shop-2", "Shop", "-shop", "shop_2", "", "shop*"];
                let takes = |prefix: &str| SearchConfig::new("https://search.example.com", prefix).is_ok();
                agrees(&name, &parameter, &samples, takes);
            }
            "SearchService" => assert_eq!(allowed, ["es", "aoss", "none"]),
            "WebhookTargets" => assert_eq!(allowed, ["public", "any"]),
            "JwtIssuer" => {
                let samples = [
                    "https://issuer.example",
                    "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_A1",
                    "https://issuer.example/",
                    "http://issuer.example",
                    "issuer.example",
                    "urn:issuer",
                ];
                agrees(&name, &parameter, &samples, |issuer| issuer.starts_with("https://"));
            }
            "JwtAudience" | "CorsOrigins" | "LoginCallbacks" => assert_eq!(parameter["Type"], "CommaDelimitedList"),
            "FoldStreamConsumers" => assert_eq!(allowed, ["true", "false"]),
            "MetricsTables" => assert_eq!(allowed, ["one", "monthly"]),
            "Mfa" => assert_eq!(allowed, ["OFF", "OPTIONAL", "ON"], "as Cognito names them"),
            // The code has no bounds for these parameters.
            "Stage"
            | "Architecture"
            | "LogRetentionDays"
            | "ConsumerConcurrency"
            | "RequestsPerSecond"
            | "RequestBurst"
            | "GuestCartsPerSecond"
            | "MaxReadUnits"
            | "MaxWriteUnits"
            | "AlarmEmail"
            | "CapacityMode"
            | "CapacityTarget"
            | "ReadCapacity"
            | "InitialReadCapacity"
            | "InitialWriteCapacity"
            | "WriteCapacity"
            | "LoginDomain"
            | "DomainName"
            | "CertificateArn"
            | "HostedZoneId"
            | "SearchArn"
            | "SearchInstanceType"
            | "SearchInstances"
            | "SearchStorageGb"
            | "MailFrom"
            | "MailIdentity"
            | "EventRetentionDays"
            | "ArchiveRetentionDays" => {}
            other => panic!("{other}: add the values that the code accepts to this test"),
        }
    }
}

#[test]
fn every_default_is_within_the_bounds_of_its_parameter() {
    for (name, parameter) in parameters() {
        assert!(parameter["Description"].as_str().is_some_and(|text| text.ends_with('.')), "{name}");
        let Some(default) = parameter.get("Default").map(text) else { continue };
        if parameter["Type"] == "Number" {
            let number: u64 = default.parse().unwrap();
            let (low, high) = (parameter["MinValue"].as_u64(), parameter["MaxValue"].as_u64());
            assert!(low.unwrap_or(0) <= number && number <= high.unwrap_or(u64::MAX), "{name}: {default}");
        }
        if let Some(allowed) = parameter["AllowedValues"].as_array() {
            assert!(allowed.iter().any(|value| text(value) == default), "{name}: {default}");
        }
        if parameter.get("AllowedPattern").is_some() {
            assert!(pattern(&parameter).is_match(&default), "{name}: {default}");
        }
    }
}

#[test]
fn the_user_pool_has_the_settings_that_cannot_be_changed_later() {
    let pool = resources("AWS::Cognito::UserPool").remove("UserPool").unwrap();
    for needed in [
        "UserPoolTier: !If [WithLogin, ESSENTIALS, LITE]",
        "UsernameConfiguration: {CaseSensitive: false}",
        "EmailSendingAccount: DEVELOPER",
        "From: !Ref MailFrom",
        "identity/${MailIdentity}",
        "AttributesRequireVerificationBeforeUpdate: [email]",
        "MfaConfiguration: !Ref Mfa",
        "AllowedFirstAuthFactors: [PASSWORD, WEB_AUTHN]",
    ] {
        assert!(pool.contains(needed), "{needed}");
    }
    let client = resources("AWS::Cognito::UserPoolClient").remove("UserPoolClient").unwrap();
    for needed in [
        "AccessTokenValidity: 60",
        "IdTokenValidity: 60",
        "RefreshTokenValidity: 30",
        "TokenValidityUnits: {AccessToken: minutes, IdToken: minutes, RefreshToken: days}",
        "AllowedOAuthFlows: !If [WithLogin, [code], ",
        "GenerateSecret: false",
    ] {
        assert!(client.contains(needed), "{needed}");
    }
    // These resources are optional, so they need a condition.
    for kind in ["AWS::Cognito::UserPoolDomain", "AWS::Cognito::ManagedLoginBranding"] {
        assert!(resources(kind).values().all(|lines| lines.contains("    Condition: WithLogin\n")), "{kind}");
    }
}

#[test]
fn no_metric_is_collected_without_a_reader() {
    let api = resources("AWS::Serverless::HttpApi").remove("HttpApi").unwrap();
    assert!(api.contains("DetailedMetricsEnabled: false"));
    let dashboards: String = resources("AWS::CloudWatch::Dashboard").into_values().collect();
    let alarms: String = resources("AWS::CloudWatch::Alarm").into_values().collect();
    // Only the detailed metrics of the API have the dimension `Resource`.
    for text in [&dashboards, &alarms] {
        assert!(!text.contains(r#""Resource""#) && !text.contains("Name: Resource"));
    }
    let table = resources("AWS::DynamoDB::Table").remove("Table").unwrap();
    let indexes = template().table.indexes.len();
    assert_eq!(table.matches("{Enabled: true, Mode: THROTTLED_KEYS}").count(), indexes + 1);
    assert_eq!(table.matches("ContributorInsightsSpecification").count(), indexes + 1);
}

/// On-demand prices as in docs/cost.md, in thousandths of a dollar for a million units.
const UNIT_PRICES: [(&str, u64); 2] = [("MaxReadUnits", 125), ("MaxWriteUnits", 625)];

#[test]
fn the_description_of_each_limit_of_the_table_has_the_maximum_cost_of_a_day() {
    let places = template().table.indexes.len() as u64 + 1;
    for (name, price) in UNIT_PRICES {
        let parameter = &parameters()[name];
        let cents = parameter["Default"].as_u64().unwrap() * 86_400 * price / 10_000_000;
        let description = parameter["Description"].as_str().unwrap();
        for (cents, of) in [(cents, "each"), (cents * places, "all four")] {
            let dollars = format!("{}.{:02}", cents / 100, cents % 100);
            assert!(description.contains(&dollars), "{name}, {of}: {dollars} is not in {description:?}");
        }
        assert!(description.contains("separately"), "{name}");
    }
}

/// Checks those figures of the idle bill that follow from the template. `UPDATE_DOCS=1` writes
/// them.
#[test]
fn the_idle_bill_counts_the_resources_of_the_template() {
    let path = root().join("docs/operations/cost.md");
    let page = read(&path);
    let alarms = resources("AWS::CloudWatch::Alarm");
    let needs_search = |lines: &str| {
        ["SeparateConsumers", "OwnSearch", "OwnSearchNodes"]
            .iter()
            .any(|name| lines.contains(&format!("Condition: {name}\n")))
    };
    let metrics = |lines: &String| lines.matches("MetricStat: ").count().max(1);
    // The default is one search node.
    let one_node = |lines: &&String| !lines.contains("Condition: OwnSearchNodes\n");
    let all: usize = alarms.values().filter(one_node).map(metrics).sum();
    let without: usize = alarms.values().filter(|lines| !needs_search(lines)).map(metrics).sum();
    let rules = 2 * (template().table.indexes.len() + 1);
    let beats: Vec<&String> = alarms.values().filter(|lines| lines.contains("MetricName: Heartbeat\n")).collect();
    let beats_without = beats.iter().filter(|lines| !needs_search(lines)).count();
    let mut expected = page.clone();
    for (what, cents, with, without) in [
        ("metrics in alarms, 0.10 each", 10, all, without),
        ("rules of Contributor Insights, 0.50 each", 50, rules, rules),
        ("metrics of the heartbeat's age, one for each stream consumer, 0.30 each", 30, beats.len(), beats_without),
    ] {
        let dollars = |number: usize| format!("{}.{:02}", number * cents / 100, number * cents % 100);
        let row = format!("| {what} | {with} | {} | {without} | {} |", dollars(with), dollars(without));
        let old = page.lines().find(|line| line.starts_with(&format!("| {what} |"))).expect(what);
        expected = expected.replace(old, &row);
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    } else {
        assert!(page == expected, "docs/operations/cost.md is out of date: UPDATE_DOCS=1 writes it\n{expected}");
    }
}

#[test]
fn a_shop_without_search_sells_and_says_that_it_has_no_search() {
    with_parameter("SearchService", "none", async |system| {
        shop::products(system, &["unsearched-tea"], 5).await;
        shop::customer(system, "unsearched-ann").await;
        let order = shop::order(system, "unsearched-ann", &[("unsearched-tea", 2)], "unsearched").await;
        drain(system).await;
        for call in [
            Call::new("GET", "/v1/search/products?q=tea"),
            Call::new("GET", "/v1/search/products?sort=nonsense"),
            Call::new("GET", "/v1/search/orders?q=ann").staff(),
        ] {
            let answer = call.send(system).await.expect(503);
            assert_eq!(answer.body["code"], "search_disabled", "{}", answer.body);
            assert!(!answer.headers.contains_key("retry-after"), "a retry does not help");
        }
        let answer = Call::new("GET", "/v1/search/orders").customer("unsearched-ann").send(system).await;
        assert_eq!((answer.status, &answer.body["code"]), (403, &json!("forbidden")));
        // The other sinks still process the records.
        let sales = shop::path(&["products", "unsearched-tea", "sales"]);
        let sales = Call::new("GET", &sales).staff().send(system).await.expect(200).body;
        assert_eq!(sales["items"][0]["order_id"], order["id"]);
        let report = Call::new("GET", "/_local/grants").send(system).await.expect(200).body;
        let functions = report["functions"].as_array().unwrap();
        assert!(functions.iter().all(|function| function["function"] != "StreamSearch"));
    });
}

#[test]
fn every_policy_has_the_current_version_of_the_policy_language() {
    let text = read(&root().join("template.yaml"));
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let mut policies = 0;
    for (line, next) in lines.iter().zip(&lines[1..]) {
        if next.trim_start_matches("- ").starts_with("Statement:") {
            policies += 1;
            assert_eq!(line.trim_start_matches("- "), "Version: '2012-10-17'", "before line {next}");
        }
    }
    assert!(policies > 20, "{policies}");
}

/// Before SES sends mail, it checks the permission for the identity and for its configuration set.
#[test]
fn only_the_notifier_may_send_mail_with_the_identity_and_the_configuration_set() {
    let senders = |suffix: &str| -> BTreeSet<String> {
        let functions = template().functions.into_iter();
        functions.filter(|one| one.may("ses:SendEmail", suffix)).map(|one| one.logical_id).collect()
    };
    assert_eq!(senders("configuration-set/MailEvents"), BTreeSet::from(["Notifier".to_owned()]));
    assert_eq!(senders("configuration-set/MailEvents"), senders("identity/${MailIdentity}"));
}

#[test]
fn samconfig_has_a_deployment_for_trials_and_one_for_customers() {
    let text = read(&root().join("samconfig.toml"));
    let (known, pair) = (parameters(), Regex::new(r#""([A-Za-z]+)=([^"]*)""#).unwrap());
    for stage in ["dev", "prod"] {
        let (_, section) = text.split_once(&format!("\n[{stage}.deploy.parameters]\n")).unwrap();
        let section = section.split_once("\n[").map_or(section, |(section, _)| section);
        for needed in [
            format!("stack_name = \"bodega-{stage}\""),
            "resolve_s3 = true".to_owned(),
            "capabilities = \"CAPABILITY_IAM\"".to_owned(),
            format!("\"Stage={stage}\""),
            format!("\"file://parameters-{stage}.yaml\""),
        ] {
            assert!(section.contains(&needed), "{stage}: {needed}");
        }
        for pair in pair.captures_iter(section) {
            let parameter = known.get(&pair[1]).unwrap_or_else(|| panic!("there is no parameter {}", &pair[1]));
            assert!(parameter["NoEcho"] != true, "{} is a secret", &pair[1]);
        }
    }
    assert!(text.contains("[prod.deploy.parameters]") && text.contains("confirm_changeset = true"));
    // Secrets are in a file that git ignores.
    assert!(read(&root().join(".gitignore")).lines().any(|line| line == "/parameters-*.yaml"));
}

#[test]
fn the_tools_that_a_deployment_needs_are_named_with_their_versions() {
    let page = read(&root().join("docs/operations/deploy.md"));
    assert!(page.contains("pip install -r .ci/deploy-tools.txt"));
    let tools = read(&root().join(".ci/deploy-tools.txt"));
    for (name, tool) in [("SAM CLI", "aws-sam-cli"), ("aws-lambda-builders", "aws-lambda-builders")] {
        let minimum = tools.lines().find_map(|line| line.strip_prefix(&format!("{tool}>=")));
        let minimum = minimum.unwrap_or_else(|| panic!("{tool} has no minimum"));
        assert!(page.contains(&format!("{name} {minimum}")), "docs/operations/deploy.md: {name} {minimum}");
    }
}

/// Returns whether CloudFront's pattern matches a path. `*` matches any characters.
fn matches(pattern: &str, path: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == path,
        Some((start, rest)) => {
            path.strip_prefix(start).is_some_and(|path| (0..=path.len()).any(|at| matches(rest, &path[at..])))
        }
    }
}

#[test]
fn cloudfront_keeps_exactly_the_public_pages() {
    const UNCACHED: &str = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad";
    let edge = read(&root().join("docs/cloudfront-and-waf.yaml")).replace("!Ref PublicPages", "PublicPages");
    let edge = ::template::parse_yaml(&edge.replace("!", "")).unwrap();
    let config = &edge["Resources"]["Distribution"]["Properties"]["DistributionConfig"];
    let behaviours = config["CacheBehaviors"].as_array().unwrap();
    let serves = |behaviour: &Json, origin: &str| behaviour["TargetOriginId"] == origin;
    let (of_site, of_api): (Vec<_>, Vec<_>) = behaviours.iter().partition(|behaviour| serves(behaviour, "site"));
    assert!(of_site.iter().all(|behaviour| behaviour["PathPattern"] == "/assets/*"));
    assert!(serves(&config["DefaultCacheBehavior"], "site") && of_api.iter().all(|behaviour| serves(behaviour, "api")));
    // CloudFront would make the ETags weak, and writes need their headers.
    assert!(of_api.iter().all(|behaviour| {
        behaviour["Compress"] == false && behaviour["AllowedMethods"].as_array().unwrap().len() == 7
    }));
    assert!(
        of_api.iter().all(|behaviour| behaviour["OriginRequestPolicyId"] == "b689b0a8-53d0-4dab-baf4-bc38264968ac")
    );
    let errors = config["CustomErrorResponses"].as_array().unwrap();
    assert!(errors.len() == 11 && errors.iter().all(|error| error["ErrorCachingMinTTL"] == 0));
    let mut used = BTreeSet::new();
    for operation in api().operations().filter(|operation| operation.method == "GET") {
        let path = operation.path.replace(['{', '}'], "");
        let found = of_api.iter().find(|behaviour| matches(behaviour["PathPattern"].as_str().unwrap(), &path));
        let policy = found.map_or("none", |behaviour| behaviour["CachePolicyId"].as_str().unwrap());
        let expected = if operation.who() == "any" && !operation.takes_secret() { "PublicPages" } else { UNCACHED };
        assert_eq!(policy, expected, "{}", operation.key());
        used.extend(found.map(|behaviour| behaviour["PathPattern"].as_str().unwrap()));
    }
    // Agents send their requests to further paths.
    for (pattern, policy) in [
        ("/.well-known/ucp*", "PublicPages"),
        ("/.well-known/acp.json", "PublicPages"),
        ("/ucp/*", UNCACHED),
        ("/acp/*", UNCACHED),
    ] {
        let found = of_api.iter().find(|behaviour| behaviour["PathPattern"] == pattern);
        assert_eq!(found.unwrap()["CachePolicyId"], policy, "{pattern}");
        used.insert(pattern);
    }
    assert_eq!(used.len(), of_api.len(), "a behaviour without a route");
}

#[test]
fn the_docs_say_how_to_put_a_firewall_in_front_of_the_api() {
    let page = read(&root().join("docs/cloudfront-and-waf.md"));
    assert!(page.contains("docs/cloudfront-and-waf.yaml") && page.contains("https://docs.aws.amazon.com/"));
    let edge = read(&root().join("docs/cloudfront-and-waf.yaml"));
    for needed in ["AWS::WAFv2::WebACL", "Scope: CLOUDFRONT", "AWS::CloudFront::Distribution"] {
        assert!(edge.contains(needed), "{needed}");
    }
    let linked = |page: &str| read(&root().join(page)).contains("cloudfront-and-waf.md");
    assert!(linked("docs/operations/deploy.md") && linked("README.md"));
    let domain = resources("AWS::ApiGatewayV2::DomainName").remove("ApiDomain").unwrap();
    assert!(domain.contains("    Condition: WithDomainName\n") && domain.contains("SecurityPolicy: TLS_1_2"));
}
