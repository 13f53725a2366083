//! Signature Version 4 in the query of a URL.

use std::time::{Duration, SystemTime};

use aws_credential_types::provider::ProvideCredentials;
use aws_sigv4::http_request::{
    PercentEncodingMode, SignableBody, SignableRequest, SignatureLocation, SigningSettings, UriPathNormalizationMode,
    sign,
};
use aws_sigv4::sign::v4::SigningParams;
use http::Request;

use crate::{Media, MediaError};

impl Media {
    /// The URL of a request that may be made for so long, with these headers.
    pub(crate) async fn sign(
        &self,
        method: &str,
        name: &str,
        headers: &[(&'static str, String)],
        from: SystemTime,
        life: Duration,
    ) -> Result<String, MediaError> {
        let credentials = self.credentials.provide_credentials().await.map_err(unsigned)?;
        let identity = credentials.into();
        let mut settings = SigningSettings::default();
        settings.signature_location = SignatureLocation::QueryParams;
        settings.expires_in = Some(life);
        // S3 takes a path as it comes.
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        let params = SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name("s3")
            .time(from)
            .settings(settings)
            .build()
            .map_err(unsigned)?
            .into();
        let url = format!("{}/{name}", self.base);
        let signed = headers.iter().map(|(name, value)| (*name, value.as_str()));
        let signable = SignableRequest::new(method, &url, signed, SignableBody::UnsignedPayload).map_err(unsigned)?;
        let (instructions, _signature) = sign(signable, &params).map_err(unsigned)?.into_parts();
        let mut request = Request::builder().method(method).uri(url).body(()).map_err(unsigned)?;
        instructions.apply_to_request_http1x(&mut request);
        Ok(request.uri().to_string())
    }
}

fn unsigned(error: impl std::error::Error) -> MediaError {
    MediaError::Signing(error.to_string())
}
