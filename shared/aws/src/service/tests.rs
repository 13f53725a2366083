//! Tests of signed requests, without a server.

#![allow(clippy::unwrap_used)]

use aws_credential_types::Credentials;

use super::*;

/// Returns a service with the credentials of S3's examples: "Authenticating Requests: Using the
/// Authorization Header" and "Using Query Parameters".
fn example() -> Service {
    let credentials =
        Credentials::new("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", None, None, "test");
    let signing = Signing::new("s3", "us-east-1", SharedCredentialsProvider::new(credentials));
    Service::new(crate::connector().unwrap(), "https://examplebucket.s3.amazonaws.com/", Some(signing))
}

fn at_midnight() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_369_353_600)
}

fn text<'a>(request: &'a Request<SdkBody>, header: &str) -> &'a str {
    request.headers().get(header).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn headers_are_signed_as_in_the_examples_of_s3() {
    let range = Call { headers: &[("range", "bytes=0-9")], ..Call::new(Method::GET, "/test.txt") };
    let request = example().signed(&range, at_midnight()).await.unwrap();
    let expected = "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
                    SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, \
                    Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
    assert_eq!(text(&request, "authorization"), expected);

    let headers = [("date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")];
    let body = Bytes::from_static(b"Welcome to Amazon S3.");
    let put = Call { headers: &headers, body, ..Call::new(Method::PUT, "/test%24file.text") };
    let request = example().signed(&put, at_midnight()).await.unwrap();
    let signature = "Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd";
    assert!(text(&request, "authorization").ends_with(signature), "{request:?}");

    let list = Call::new(Method::GET, "/?max-keys=2&prefix=J");
    let request = example().signed(&list, at_midnight()).await.unwrap();
    let signature = "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
    assert!(text(&request, "authorization").ends_with(signature), "{request:?}");
}

#[tokio::test]
async fn a_query_is_signed_as_in_the_example_of_s3() {
    let call = Call::new(Method::GET, "/test.txt");
    let url = example().presign(&call, at_midnight(), Duration::from_secs(86_400)).await.unwrap();
    let signature = "X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
    assert!(
        url.starts_with("https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&"),
        "{url}"
    );
    assert!(url.contains(signature), "{url}");
    let unsigned = Service::new(crate::connector().unwrap(), "http://localhost", None);
    assert!(matches!(unsigned.presign(&call, at_midnight(), Duration::from_secs(1)).await, Err(Failure::Invalid(_))));
    let request = unsigned.signed(&call, at_midnight()).await.unwrap();
    assert!(request.headers().is_empty(), "{request:?}");
}

#[tokio::test]
async fn a_path_is_normalized_for_every_service_but_s3() {
    let signature = async |service: &'static str, path: &str| {
        let credentials = SharedCredentialsProvider::new(Credentials::new("AKID", "secret", None, None, "test"));
        let signing = Signing::new(service, "eu-central-1", credentials);
        let service = Service::new(crate::connector().unwrap(), "http://localhost:1", Some(signing));
        let request = service.signed(&Call::new(Method::GET, path), at_midnight()).await.unwrap();
        text(&request, "authorization").to_owned()
    };
    assert_eq!(signature("es", "/a/../b").await, signature("es", "/b").await);
    assert_ne!(signature("s3", "/a/../b").await, signature("s3", "/b").await);
    assert_ne!(signature("s3", "//b").await, signature("s3", "/b").await);
}

#[tokio::test]
async fn a_session_and_the_hash_of_the_body_are_signed() {
    let credentials = Credentials::new("AKID", "secret", Some("token".to_owned()), None, "test");
    let credentials = SharedCredentialsProvider::new(credentials);
    let service = Service::of(Api::Ses, "eu-central-1", None, credentials).unwrap();
    let body = Bytes::from_static(b"{}\n");
    let call = Call { body, headers: &[("content-type", "application/json")], ..Call::new(Method::POST, "/v2/x") };
    let request = service.signed(&call, at_midnight()).await.unwrap();
    assert_eq!(request.uri(), "https://email.eu-central-1.amazonaws.com/v2/x");
    let authorization = text(&request, "authorization");
    assert!(authorization.contains("Credential=AKID/20130524/eu-central-1/ses/aws4_request"), "{authorization}");
    let signed = "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token,";
    assert!(authorization.contains(signed), "{authorization}");
    // printf '{}\n' | sha256sum
    let sum = "ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356";
    assert_eq!((text(&request, "x-amz-content-sha256"), text(&request, "x-amz-security-token")), (sum, "token"));

    let credentials = SharedCredentialsProvider::new(Credentials::new("AKID", "secret", None, None, "test"));
    let signing = Signing::new("aoss", "eu-central-1", credentials);
    let service = Service::new(crate::connector().unwrap(), "http://example.com", Some(signing));
    let request = service.signed(&Call::new(Method::GET, "/_search"), at_midnight()).await.unwrap();
    let authorization = text(&request, "authorization");
    assert!(authorization.contains("/eu-central-1/aoss/aws4_request"), "{authorization}");
    // OpenSearch Serverless refuses a signature that covers the length of the body.
    assert!(authorization.contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date,"), "{authorization}");
    let hash_of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(text(&request, "x-amz-content-sha256"), hash_of_nothing);
}

#[test]
fn only_functions_pass_the_trace_on() {
    let environment = |function: Option<&str>, trace: Option<&str>| {
        let (function, trace) = (function.map(str::to_owned), trace.map(str::to_owned));
        let trace = trace_of_lambda(|name| match name {
            "AWS_LAMBDA_FUNCTION_NAME" => function.clone(),
            "_X_AMZN_TRACE_ID" => trace.clone(),
            _ => None,
        });
        trace.map(|trace| trace.to_str().unwrap().to_owned())
    };
    let trace = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
    assert_eq!(environment(Some("Catalog"), Some(trace)).as_deref(), Some(trace));
    assert_eq!(environment(None, Some(trace)), None);
    assert_eq!(environment(Some("Catalog"), None), None);
    assert_eq!(environment(Some("Catalog"), Some("a\nb")), None);
}

#[tokio::test]
async fn an_endpoint_without_a_host_is_refused_before_it_is_signed() {
    let signing = Signing::new(
        "s3",
        "us-east-1",
        SharedCredentialsProvider::new(Credentials::new("AKID", "secret", None, None, "test")),
    );
    for address in ["/", "", "not a host/", "/path"] {
        let service = Service::new(crate::connector().unwrap(), address, Some(signing.clone()));
        let call = Call::new(Method::GET, "/a");
        assert!(matches!(service.signed(&call, at_midnight()).await, Err(Failure::Invalid(_))), "{address}");
        let url = service.presign(&call, at_midnight(), Duration::from_secs(1)).await;
        assert!(matches!(url, Err(Failure::Invalid(_))), "{address}");
    }
}

#[test]
fn a_pause_never_exceeds_its_doubling_upper_bound() {
    let limits = Limits { backoff: Duration::from_millis(50), ..Limits::default() };
    for (attempts, ceiling) in [(1, 50), (2, 100), (3, 200), (40, u64::from(u32::MAX) * 50)] {
        assert_eq!(limits.longest_pause(attempts), Duration::from_millis(ceiling));
    }
}

#[test]
fn an_error_code_is_read_from_header_or_body_without_its_namespace() {
    let response = |header: Option<&'static str>, body: &'static str| {
        let mut response = Response { status: 400, body: body.into(), ..Response::default() };
        if let Some(header) = header {
            response.headers.insert("x-amzn-errortype", header.parse().unwrap());
        }
        response.json_error()
    };
    for (header, body, code) in [
        (Some("BadRequestException"), "{}", Some("BadRequestException")),
        (Some("a.b#BadRequestException:http://x/"), r#"{"__type":"Other"}"#, Some("BadRequestException")),
        (None, r#"{"__type":"com.amazon.coral#ThrottlingException"}"#, Some("ThrottlingException")),
        (None, r#"{"code":"Throttling","message":"x"}"#, Some("Throttling")),
        (None, r#"{"__type":"x#Throttling","code":"SlowDown"}"#, Some("SlowDown")),
        (None, r#"{"__type":"x#Throttling","code":400}"#, Some("Throttling")),
        (None, r#"{"message":"x"}"#, None),
        (None, "<html>", None),
        (None, "", None),
    ] {
        assert_eq!(response(header, body).as_deref(), code, "{header:?} {body}");
    }
    for (status, code, again) in [
        (500, None, true),
        (501, None, false),
        (502, None, true),
        (429, None, true),
        (400, Some("ThrottlingException"), true),
        (400, Some("RequestTimeoutException"), true),
        (400, Some("ValidationException"), false),
        (403, None, false),
    ] {
        assert_eq!(is_transient(status, code), again, "{status} {code:?}");
    }
}
