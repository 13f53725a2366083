use super::*;

fn with_cors(settings: &str) -> Result<Template, TemplateError> {
    small("Properties: {Auth:", &format!("Properties: {{CorsConfiguration: {{{settings}}}, Auth:"))
}

#[test]
fn an_api_without_a_cors_configuration_allows_no_origin() {
    assert_eq!(small("3", "3").unwrap().cors, None);
}

#[test]
fn methods_are_read_in_upper_case_and_headers_in_lower_case() {
    let settings = "AllowOrigins: ['https://a.example', 'http://localhost:5173'], AllowMethods: [get, PUT], \
                    AllowHeaders: [Authorization], ExposeHeaders: [ETag], MaxAge: 5";
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    assert_eq!(
        with_cors(settings).unwrap().cors.unwrap(),
        Cors {
            origins: Origins::These(texts(&["https://a.example", "http://localhost:5173"])),
            methods: texts(&["GET", "PUT"]),
            headers: texts(&["authorization"]),
            exposed: texts(&["etag"]),
            max_age: Some(5),
        }
    );
    // The parameter has the type `CommaDelimitedList`.
    for (value, expected) in [
        (
            "'https://a.example, http://b.example:1'",
            Origins::These(texts(&["https://a.example", "http://b.example:1"])),
        ),
        ("'*'", Origins::Any),
    ] {
        let cors = with_cors(&format!("AllowOrigins: {value}")).unwrap().cors.unwrap();
        assert_eq!(cors.origins, expected);
        assert_eq!((cors.methods.len(), cors.headers.len(), cors.exposed.len(), cors.max_age), (0, 0, 0, None));
    }
}

#[test]
fn unusable_and_unsupported_cors_settings_are_refused_with_their_line() {
    for (settings, expected) in [
        ("AllowOrigins: [shop.example]", "shop.example is no origin such as https://"),
        ("AllowOrigins: ['https://shop.example/']", "https://shop.example/ is no origin"),
        ("AllowOrigins: ['https://*']", "https://* is no origin"),
        ("AllowOrigins: ['https://a.example', '*']", "* is no origin"),
        ("AllowMethods: [GET]", "AllowOrigins is missing"),
        ("AllowOrigins: ['*'], AllowHeaders: ['*']", "*: list each name"),
        ("AllowOrigins: ['*'], AllowCredentials: true", "AllowCredentials: this property is not supported"),
        ("AllowOrigins: ['*'], MaxAge: 86401", "a number from 0 to 86400"),
    ] {
        let error = with_cors(settings).unwrap_err();
        assert!(error.to_string().contains(expected), "{settings} gave {error}");
        assert!(error.line().is_some(), "{error}");
    }
}

#[test]
fn the_real_api_allows_the_origins_in_its_parameter_and_only_localhost_by_default() {
    assert_eq!(real().cors.unwrap().origins, Origins::These(vec!["https://localhost".to_owned()]));
    let deployment = local().parameter("CorsOrigins", "https://shop.example,https://admin.example");
    let cors = Template::read_for(&real_path(), &deployment).unwrap().cors.unwrap();
    let expected = ["https://shop.example", "https://admin.example"].map(str::to_owned).to_vec();
    assert_eq!(cors.origins, Origins::These(expected));
}

#[test]
fn a_buckets_cors_rules_are_read_and_unsupported_rules_are_refused() {
    let bucket = |properties: &str| {
        small("  One:\n", &format!("  Pictures: {{Type: AWS::S3::Bucket{properties}}}\n  One:\n"))
            .map(|template| template.buckets[0].cors.clone())
    };
    assert_eq!(bucket("").unwrap(), []);
    let rules = bucket(
        ", Properties: {CorsConfiguration: {CorsRules: [{AllowedOrigins: 'https://a.example, https://b.example', \
         AllowedMethods: [GET, PUT], AllowedHeaders: [Content-Type], MaxAge: 3600}]}}",
    );
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let expected = BucketCors {
        origins: texts(&["https://a.example", "https://b.example"]),
        methods: texts(&["GET", "PUT"]),
        headers: texts(&["content-type"]),
        exposed: Vec::new(),
        max_age: Some(3600),
    };
    assert_eq!(rules.unwrap(), [expected]);
    for wrong in
        ["AllowedMethods: [GET]", "AllowedOrigins: ['*']", "AllowedOrigins: ['*'], AllowedMethods: [GET], Other: 1"]
    {
        let properties = format!(", Properties: {{CorsConfiguration: {{CorsRules: [{{{wrong}}}]}}}}");
        assert!(bucket(&properties).is_err(), "{wrong}");
    }
}
