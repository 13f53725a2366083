use super::*;

#[test]
fn an_authorizer_must_have_an_issuer_and_audiences() {
    let jwt = |audience: &[&str]| Authorizer {
        name: "Jwt".to_owned(),
        issuer: "https://issuer.example".to_owned(),
        audience: audience.iter().map(|&name| name.to_owned()).collect(),
    };
    assert_eq!(small("3", "3").unwrap().authorizers, [jwt(&["shop"])]);
    assert_eq!(small("[shop]", "[!Ref Level, shop]").unwrap().authorizers, [jwt(&["low", "shop"])]);
    let auth = SMALL.lines().find_map(|line| line.trim().strip_prefix("Properties: {Auth")).unwrap();
    assert_eq!(small(&format!("{{Auth{auth}"), "{}").unwrap().authorizers, []);
    for (from, to, expected) in [
        ("issuer: https://issuer.example, ", "", "issuer is missing"),
        (", audience: [shop]", "", "audience is missing"),
        ("{JwtConfiguration: {", "{Scopes: [x], JwtConfiguration: {", "this property is not supported"),
        ("audience: [shop]", "audience: [shop], scopes: x", "this property is not supported"),
    ] {
        let error = refusal(from, to);
        assert!(error.contains(expected), "{to} gave {error}");
    }
}

/// CloudFormation splits a `CommaDelimitedList` at its commas and trims each part. Every reference
/// to such a parameter is a list.
#[test]
fn a_list_parameter_is_a_list_in_every_reference() {
    let list = "  Level: {Type: CommaDelimitedList, Default: 'shop, office'}\n  Secret";
    let with = |from: &str, to: &str| {
        let text = SMALL.replace("  Level: {Type: String, Default: low}\n  Secret", list).replace(from, to);
        Template::parse_for(&text.replace("!Equals [!Ref Level, low]", "!Equals [a, a]"), &Deployment::new("r", "a"))
    };
    let read = with("[shop]", "!If [Low, !Ref Level, [x]]").unwrap();
    assert_eq!(read.authorizers[0].audience, ["shop", "office"]);
    let joined = with("!If [Low, l, h]", "!Join ['|', !Ref Level]").unwrap();
    assert_eq!(joined.functions[0].environment["LEVEL"], "shop|office");
    for wrong in ["!Ref Level", "!Sub 'x${Level}'", "!Join ['|', [!Ref Level]]"] {
        assert!(with("!If [Low, l, h]", wrong).is_err(), "{wrong}");
    }
}

/// The issuer is the stack's user pool, or the value of the parameter `JwtIssuer`.
#[test]
fn the_gateway_trusts_the_user_pool_or_the_issuer_of_the_parameters() {
    let other = local().parameter("JwtIssuer", "https://issuer.example").parameter("JwtAudience", "shop, office");
    let own = local().name("UserPool", "eu-west-1_A1").name("UserPoolClient", "client");
    let expected = [
        (own, "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_A1", vec!["client"]),
        (other, "https://issuer.example", vec!["shop", "office"]),
    ];
    for (deployment, issuer, audiences) in expected {
        let template = Template::read_for(&real_path(), &deployment).unwrap();
        let [authorizer] = template.authorizers.as_slice() else { panic!("{:?}", template.authorizers) };
        assert_eq!(
            (authorizer.issuer.as_str(), authorizer.audience.as_slice()),
            (issuer, audiences.into_iter().map(str::to_owned).collect::<Vec<_>>().as_slice())
        );
    }
}
