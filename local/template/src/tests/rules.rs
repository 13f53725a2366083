use super::*;

fn read(parameters: &[(&str, &str)]) -> Result<Template, TemplateError> {
    let deployment = Deployment::new("eu-west-1", "111122223333");
    let deployment = deployment.parameter("MailFrom", "shop@example.com").parameter("MailIdentity", "example.com");
    let deployment =
        deployment.parameter("CursorKeysSecret", "arn:cursors").parameter("EmailCodeKeysSecret", "arn:codes");
    let with = |deployment: Deployment, (name, value): &(&str, &str)| deployment.parameter(name, *value);
    Template::read_for(&real_path(), &parameters.iter().fold(deployment, with))
}

#[test]
fn a_parameter_without_the_parameters_that_it_needs_is_refused() {
    let (url, arn) = ("https://search.example.com", "arn:aws:es:eu-west-1:111122223333:domain/shop");
    let (issuer, api, certificate) = ("https://issuer.example", "api.example.com", "arn:aws:acm:eu-west-1:1:x");
    let together: [&[(&str, &str)]; 8] = [
        &[],
        &[("SearchEndpoint", url), ("SearchArn", arn)],
        &[("SearchEndpoint", url), ("SearchArn", arn), ("SearchService", "aoss")],
        &[("SearchService", "none")],
        &[("JwtIssuer", issuer), ("JwtAudience", "app,office")],
        &[("LoginDomain", "shop"), ("LoginCallbacks", "https://shop.example.com/in")],
        &[("DomainName", api), ("CertificateArn", certificate)],
        &[("DomainName", api), ("CertificateArn", certificate), ("HostedZoneId", "Z1")],
    ];
    for parameters in together {
        assert!(read(parameters).is_ok(), "{parameters:?}: {:?}", read(parameters).err());
    }
    let apart: [(&[(&str, &str)], &str); 7] = [
        (&[("SearchEndpoint", url)], "Give SearchArn"),
        (&[("SearchArn", arn)], "Give SearchEndpoint"),
        (&[("SearchService", "aoss")], "Give SearchEndpoint"),
        (&[("JwtIssuer", issuer)], "Give JwtAudience"),
        (&[("JwtAudience", "app")], "Give JwtIssuer"),
        (&[("LoginDomain", "shop"), ("JwtIssuer", issuer), ("JwtAudience", "app")], "LoginDomain belongs"),
        (&[("DomainName", api)], "Give CertificateArn"),
    ];
    for (parameters, says) in apart {
        let refused = read(parameters).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains(says), "{parameters:?}: {refused:?}");
    }
}

#[test]
fn a_rule_of_a_template_must_have_assertions_and_its_violation_is_refused() {
    let with = |rule: &str| Template::parse_for(&format!("Rules: {{R: {rule}}}\n{SMALL}"), &Deployment::new("r", "a"));
    assert!(with("{Assertions: [{Assert: !Equals [a, a]}]}").is_ok());
    assert!(with("{RuleCondition: !Equals [a, b], Assertions: [{Assert: !Equals [a, b]}]}").is_ok());
    assert!(with("{Assertions: [{Assert: !Equals [a, b]}]}").unwrap_err().to_string().contains("a rule is broken"));
    assert!(with("{Assertions: [{}]}").unwrap_err().to_string().contains("Assert is missing"));
    assert!(with("{Assertions: [{Assert: !Contains [[a], a]}]}").is_err());
}

/// Without search there is no domain, no search consumer and no permission for a search domain.
#[test]
fn a_deployment_without_search_has_no_search_consumer_and_no_search_permissions() {
    for folded in ["true", "false"] {
        let template = read(&[("SearchService", "none"), ("FoldStreamConsumers", folded)]).unwrap();
        assert!(template.function("StreamSearch").is_none());
        let streams: Vec<&str> = template.streams.iter().map(|stream| stream.function.as_str()).collect();
        assert_eq!(streams, ["StreamEvents"]);
        assert_eq!(template.function("StreamEvents").unwrap().environment["SINKS"], "bus,audit,derived");
        assert_eq!(template.function("Search").unwrap().environment["SEARCH_SERVICE"], "none");
        for function in &template.functions {
            let actions = function.statements.iter().flat_map(|statement| &statement.actions);
            let search: Vec<_> =
                actions.filter(|action| action.starts_with("es:") || action.starts_with("aoss:")).collect();
            assert!(search.is_empty(), "{}: {search:?}", function.logical_id);
        }
    }
}
