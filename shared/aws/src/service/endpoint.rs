//! Endpoints of AWS services: the rules of the SDK's endpoint data, for the services that Bodega
//! calls without an SDK crate.

use crate::{boolean_variable, variable};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    CloudFormation,
    CloudWatch,
    EventBridge,
    S3,
    SecretsManager,
    /// Amazon Simple Email Service, version 2 of its API.
    Ses,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Variant {
    /// An endpoint with validated cryptography (FIPS 140).
    pub fips: bool,
    /// An endpoint that is reachable by IPv6, too.
    pub dual_stack: bool,
}

/// The partitions of AWS: a prefix of region names, the suffix of host names, and the suffix of
/// dual-stack host names.
const PARTITIONS: [(&str, &str, &str); 7] = [
    ("cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn"),
    ("eusc-", "amazonaws.eu", "api.amazonwebservices.eu"),
    ("us-iso-", "c2s.ic.gov", "api.aws.ic.gov"),
    ("us-isob-", "sc2s.sgov.gov", "api.aws.scloud"),
    ("eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"),
    ("us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov"),
    // Partitions `aws` and `aws-us-gov`.
    ("", "amazonaws.com", "api.aws"),
];

impl Api {
    /// Returns the service's name in signatures.
    pub(crate) const fn signed_as(self) -> &'static str {
        match self {
            Self::CloudFormation => "cloudformation",
            Self::CloudWatch => "monitoring",
            Self::EventBridge => "events",
            Self::S3 => "s3",
            Self::SecretsManager => "secretsmanager",
            Self::Ses => "ses",
        }
    }

    const fn endpoint_variable(self) -> &'static str {
        match self {
            Self::CloudFormation => "AWS_ENDPOINT_URL_CLOUDFORMATION",
            Self::CloudWatch => "AWS_ENDPOINT_URL_CLOUDWATCH",
            Self::EventBridge => "AWS_ENDPOINT_URL_EVENTBRIDGE",
            Self::S3 => "AWS_ENDPOINT_URL_S3",
            Self::SecretsManager => "AWS_ENDPOINT_URL_SECRETS_MANAGER",
            Self::Ses => "AWS_ENDPOINT_URL_SESV2",
        }
    }

    pub(crate) fn address(self, region: &str, variant: Variant) -> String {
        format!("https://{}", self.host(region, variant))
    }

    pub(crate) fn host(self, region: &str, Variant { fips, dual_stack }: Variant) -> String {
        let host = if self == Self::Ses { "email" } else { self.signed_as() };
        // In GovCloud, every endpoint of these two services is FIPS-validated, under its usual
        // name.
        let is_fips_anyway = region.starts_with("us-gov-") && matches!(self, Self::CloudWatch | Self::EventBridge);
        let fips = if fips && !is_fips_anyway { "-fips" } else { "" };
        let (plain, dual) = suffixes(region);
        match (self, dual_stack) {
            (Self::S3, true) => format!("{host}{fips}.dualstack.{region}.{plain}"),
            (_, true) => format!("{host}{fips}.{region}.{dual}"),
            (_, false) => format!("{host}{fips}.{region}.{plain}"),
        }
    }
}

impl Variant {
    /// Reads `AWS_USE_FIPS_ENDPOINT` and `AWS_USE_DUALSTACK_ENDPOINT`.
    pub(crate) fn from_env() -> Self {
        let is_on = |name| boolean_variable(name) == Some(true);
        Self { fips: is_on("AWS_USE_FIPS_ENDPOINT"), dual_stack: is_on("AWS_USE_DUALSTACK_ENDPOINT") }
    }
}

/// Returns the endpoint that the environment sets for this service, or for all services.
pub(crate) fn configured(api: Api) -> Option<String> {
    variable(api.endpoint_variable()).or_else(|_| variable("AWS_ENDPOINT_URL")).ok()
}

pub(crate) fn suffixes(region: &str) -> (&'static str, &'static str) {
    let partition = PARTITIONS.into_iter().find(|(prefix, ..)| region.starts_with(prefix));
    partition.map_or(("amazonaws.com", "api.aws"), |(_, plain, dual)| (plain, dual))
}

/// Returns whether a host belongs to AWS, so that its certificate chains to Amazon's roots.
pub(crate) fn is_of_aws(host: &str) -> bool {
    let suffixes = PARTITIONS.iter().flat_map(|(_, plain, dual)| [plain, dual]);
    suffixes.into_iter().any(|suffix| host.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('.')))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use aws_sdk_dynamodb::config::endpoint::{DefaultResolver, Params, ResolveEndpoint as _};

    use super::*;

    const REGIONS: [&str; 14] = [
        "us-east-1",
        "eu-central-1",
        "ap-southeast-2",
        "mx-central-1",
        "cn-north-1",
        "cn-northwest-1",
        "us-gov-west-1",
        "us-gov-east-1",
        "eusc-de-east-1",
        "us-iso-east-1",
        "us-isob-east-1",
        "eu-isoe-west-1",
        "us-isof-south-1",
        "us-isof-east-1",
    ];

    fn variants() -> impl Iterator<Item = Variant> {
        [(false, false), (false, true), (true, false), (true, true)]
            .into_iter()
            .map(|(fips, dual_stack)| Variant { fips, dual_stack })
    }

    #[tokio::test]
    async fn every_partition_has_the_suffixes_of_the_sdks_own_data() {
        let resolver = DefaultResolver::new();
        for (region, variant) in REGIONS.into_iter().flat_map(|region| variants().map(move |variant| (region, variant)))
        {
            let Variant { fips, dual_stack } = variant;
            let params = Params::builder().region(region).use_fips(fips).use_dual_stack(dual_stack).build().unwrap();
            let theirs = resolver.resolve_endpoint(&params).await.unwrap().url().to_owned();
            // The resolver leaves out `-fips` for DynamoDB in GovCloud. That exception does not
            // apply here.
            let name = theirs.strip_prefix("https://dynamodb").unwrap().trim_start_matches("-fips");
            let ours = Api::Ses.address(region, variant);
            let expected = if fips { "https://email-fips" } else { "https://email" };
            assert_eq!(ours, format!("{expected}{name}"), "{region} {variant:?}");
        }
    }

    /// The hosts come from the rule sets of botocore 1.44.
    #[test]
    fn services_have_the_hosts_of_their_rule_sets() {
        let hosts = |api: Api, region: &str| variants().map(|variant| api.host(region, variant)).collect::<Vec<_>>();
        assert_eq!(
            hosts(Api::S3, "eu-central-1"),
            [
                "s3.eu-central-1.amazonaws.com",
                "s3.dualstack.eu-central-1.amazonaws.com",
                "s3-fips.eu-central-1.amazonaws.com",
                "s3-fips.dualstack.eu-central-1.amazonaws.com",
            ]
        );
        assert_eq!(hosts(Api::S3, "us-isob-east-1").get(1).unwrap(), "s3.dualstack.us-isob-east-1.sc2s.sgov.gov");
        for (api, name) in [(Api::EventBridge, "events"), (Api::CloudWatch, "monitoring")] {
            assert_eq!(
                hosts(api, "cn-north-1"),
                [
                    format!("{name}.cn-north-1.amazonaws.com.cn"),
                    format!("{name}.cn-north-1.api.amazonwebservices.com.cn"),
                    format!("{name}-fips.cn-north-1.amazonaws.com.cn"),
                    format!("{name}-fips.cn-north-1.api.amazonwebservices.com.cn"),
                ]
            );
            let (plain, dual) =
                (format!("{name}.us-gov-east-1.amazonaws.com"), format!("{name}.us-gov-east-1.api.aws"));
            assert_eq!(hosts(api, "us-gov-east-1"), [plain.clone(), dual.clone(), plain, dual]);
        }
        assert_eq!(hosts(Api::Ses, "us-gov-west-1").get(3).unwrap(), "email-fips.us-gov-west-1.api.aws");
    }

    #[test]
    fn only_hosts_of_aws_are_recognized_as_such() {
        for (host, aws) in [
            ("cognito-idp.eu-west-1.amazonaws.com", true),
            ("cognito-idp.cn-north-1.amazonaws.com.cn", true),
            ("cognito-idp.eu-west-1.api.aws", true),
            ("issuer.example", false),
            ("notamazonaws.com", false),
            ("amazonaws.com", false),
            ("amazonaws.com.example", false),
        ] {
            assert_eq!(is_of_aws(host), aws, "{host}");
        }
    }
}
