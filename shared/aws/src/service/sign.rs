//! AWS Signature Version 4, in headers and in the query of an address.

use std::fmt;
use std::time::{Duration, SystemTime};

use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SignatureLocation, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4::SigningParams;
use aws_smithy_types::body::SdkBody;
use http::Request;

use super::Failure;

/// The signer of calls: credentials, and the service and region that signatures are for.
#[derive(Clone)]
pub struct Signing {
    /// The service's name in signatures.
    pub service: &'static str,
    pub region: String,
    pub credentials: SharedCredentialsProvider,
}

impl fmt::Debug for Signing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signing").field("service", &self.service).field("region", &self.region).finish_non_exhaustive()
    }
}

impl Signing {
    #[must_use]
    pub fn new(service: &'static str, region: &str, credentials: SharedCredentialsProvider) -> Self {
        Self { service, region: region.to_owned(), credentials }
    }

    pub(super) async fn sign_headers(
        &self,
        request: &mut Request<SdkBody>,
        body: &[u8],
        now: SystemTime,
    ) -> Result<(), Failure> {
        let mut settings = self.settings();
        // S3 and OpenSearch Serverless require the body's hash as a header. The other services
        // accept it.
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        self.sign(request, SignableBody::Bytes(body), now, settings).await
    }

    /// Adds the signature to the query. The body is not signed, so the holder of the address may
    /// send any body.
    pub(super) async fn sign_query(
        &self,
        request: &mut Request<SdkBody>,
        from: SystemTime,
        life: Duration,
    ) -> Result<(), Failure> {
        let mut settings = self.settings();
        settings.signature_location = SignatureLocation::QueryParams;
        settings.expires_in = Some(life);
        self.sign(request, SignableBody::UnsignedPayload, from, settings).await
    }

    fn settings(&self) -> SigningSettings {
        let mut settings = SigningSettings::default();
        if self.service == "s3" {
            // S3 signs the path as it is sent: encoded once and not normalized.
            settings.percent_encoding_mode = PercentEncodingMode::Single;
            settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        }
        settings
    }

    async fn sign(
        &self,
        request: &mut Request<SdkBody>,
        body: SignableBody<'_>,
        time: SystemTime,
        settings: SigningSettings,
    ) -> Result<(), Failure> {
        let credentials = self.credentials.provide_credentials().await.map_err(Failure::invalid)?;
        let identity = credentials.into();
        let params = SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(self.service)
            .time(time)
            .settings(settings)
            .build()
            .map_err(Failure::invalid)?
            .into();
        let uri = request.uri().to_string();
        let headers = request.headers().iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let signable = SignableRequest::new(request.method().as_str(), uri, headers, body).map_err(Failure::invalid)?;
        let (instructions, _signature) = sign(signable, &params).map_err(Failure::invalid)?.into_parts();
        instructions.apply_to_request_http1x(request);
        Ok(())
    }
}
