//! The bounces and complaints that SES reports.
//!
//! SES sends them to the default bus of the account as `Email Bounced` and `Email Complaint
//! Received` ([events of SES](https://docs.aws.amazon.com/eventbridge/latest/ref/events-ref-ses.html)).
//! The detail has the fields of every [SES event
//! record](https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html).
//!
//! A report also lists the addresses that bounced or complained. SES takes these addresses from the
//! message of the recipient's mail server, so the recipient could name any address there. The
//! notifier ignores them, and stops mail to the address to which it sent the mail.

use key_schema::recipient::StopReason;
use key_schema::text::Email;
use serde::Deserialize;
use serde_json::Value;

pub const SOURCE: &str = "aws.ses";
/// The maximum number of recipients of one mail in SES.
const MAX_RECIPIENTS: usize = 50;

/// A report that cannot be read. The error does not quote the report, which contains an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a report of SES")]
pub struct NotFeedback;

/// The recipients to whom no more mail may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feedback {
    pub reason: StopReason,
    /// The addresses. The list is empty for a bounce that is not permanent.
    pub recipients: Vec<Email>,
}

#[derive(Deserialize)]
#[serde(tag = "eventType")]
enum Detail {
    Bounce { bounce: Bounce, mail: Mail },
    Complaint { mail: Mail },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bounce {
    bounce_type: String,
}

#[derive(Deserialize)]
struct Mail {
    destination: Vec<String>,
}

impl Feedback {
    pub fn read(detail: &Value) -> Result<Self, NotFeedback> {
        let (reason, recipients) = match Detail::deserialize(detail).map_err(|_| NotFeedback)? {
            Detail::Bounce { bounce, mail } if bounce.bounce_type == "Permanent" => {
                (StopReason::Bounce, mail.destination)
            }
            // A bounce that is not permanent, for example because of a full mailbox, stops no mail.
            Detail::Bounce { .. } => (StopReason::Bounce, Vec::new()),
            Detail::Complaint { mail } => (StopReason::Complaint, mail.destination),
        };
        if recipients.len() > MAX_RECIPIENTS {
            return Err(NotFeedback);
        }
        let recipients = recipients.iter().map(|recipient| address(recipient)).collect::<Result<_, _>>()?;
        Ok(Self { reason, recipients })
    }
}

/// Returns the address of `name@domain` or `Name <name@domain>`.
fn address(text: &str) -> Result<Email, NotFeedback> {
    let text = text.trim();
    let bare = text.strip_suffix('>').and_then(|text| text.rsplit_once('<')).map_or(text, |(_, bare)| bare);
    bare.parse().map_err(|_| NotFeedback)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_concerns_the_address_of_the_mail_and_no_other() {
        let bounce = |kind: &str, address: &str| {
            json!({"eventType": "Bounce", "bounce": {"bounceType": kind, "bounceSubType": "General",
                "bouncedRecipients": [{"emailAddress": "victim@example.com", "action": "failed"}]},
                "mail": {"destination": [address]}})
        };
        let zoe: Vec<Email> = vec!["zoe@example.com".parse().unwrap()];
        for address in ["zoe@example.com", "Zoë <zoe@example.com>", " <zoe@example.com>"] {
            let read = Feedback::read(&bounce("Permanent", address)).unwrap();
            assert_eq!(read, Feedback { reason: StopReason::Bounce, recipients: zoe.clone() }, "{address}");
        }
        for kind in ["Transient", "Undetermined"] {
            assert!(Feedback::read(&bounce(kind, "zoe@example.com")).unwrap().recipients.is_empty(), "{kind}");
        }
        let complaint = json!({"eventType": "Complaint", "mail": {"destination": ["zoe@example.com"]},
            "complaint": {"complainedRecipients": [{"emailAddress": "nobody"}]}});
        let read = Feedback::read(&complaint).unwrap();
        assert_eq!(read, Feedback { reason: StopReason::Complaint, recipients: zoe });
    }

    #[test]
    fn a_report_in_an_unknown_form_is_refused() {
        let many = vec!["zoe@example.com"; MAX_RECIPIENTS + 1];
        for detail in [
            json!({}),
            json!({"eventType": "Delivery", "delivery": {}}),
            json!({"eventType": "Bounce"}),
            json!({"eventType": "Complaint", "complaint": {}}),
            json!({"eventType": "Complaint", "mail": {"destination": ["nobody"]}}),
            json!({"eventType": "Complaint", "mail": {"destination": many}}),
        ] {
            assert_eq!(Feedback::read(&detail), Err(NotFeedback), "{detail}");
        }
    }
}
