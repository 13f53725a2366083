use http_api::Code;
use serde_json::Value;

/// The maximum size of a response, in bytes.
const MAX_ANSWER_BYTES: usize = 6 * 1024 * 1024;
const MAX_ERRORS: usize = 100;

/// The parts of a response that the targets check.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub status: u16,
    /// The code of the problem, if the request was refused.
    pub code: Option<String>,
    /// The link to a list's next page.
    pub link: Option<String>,
    /// The body, or null if there is none.
    pub body: Value,
}

impl Answer {
    /// Parses a function's response in the form that the runtime receives.
    ///
    /// # Panics
    /// When API Gateway would not accept the response, or when a problem does not match
    /// `openapi.yaml`.
    #[must_use]
    pub fn read(text: &str) -> Self {
        assert!(text.len() <= MAX_ANSWER_BYTES, "an answer of {} bytes", text.len());
        let reply: Value = serde_json::from_str(text).expect("an answer is JSON");
        let status = reply["statusCode"].as_u64().and_then(|status| u16::try_from(status).ok()).expect("a status");
        let headers = reply["headers"].as_object().expect("headers");
        for (name, value) in headers {
            let value = value.as_str().expect("a header is text");
            assert!(
                name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
                "{name}"
            );
            assert!(value.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{name}: {value:?}");
        }
        let header = |name: &str| headers.get(name).and_then(Value::as_str);
        assert!(
            header("x-request-id").is_some_and(|id| !id.is_empty()) && header("cache-control").is_some(),
            "{reply}"
        );
        let text = reply["body"].as_str().expect("a body is text");
        let body: Value =
            if text.is_empty() { Value::Null } else { serde_json::from_str(text).expect("a body is JSON") };
        if status < 400 {
            assert!((200..300).contains(&status), "{reply}");
            assert_eq!(status == 204, body.is_null(), "{reply}");
            return Self { status, code: None, link: header("link").map(str::to_owned), body };
        }
        assert_eq!(header("content-type"), Some("application/problem+json"), "{reply}");
        let code = Code::ALL
            .iter()
            .find(|code| body["code"] == code.name())
            .unwrap_or_else(|| panic!("the problem has no code: {reply}"));
        assert_eq!(code.status().as_u16(), status, "{reply}");
        assert!(
            body["status"] == status && body["request_id"] == header("x-request-id").unwrap_or_default(),
            "{reply}"
        );
        assert!(body["errors"].as_array().is_none_or(|errors| (1..=MAX_ERRORS).contains(&errors.len())), "{reply}");
        Self { status, code: Some(code.name().to_owned()), link: None, body }
    }
}
