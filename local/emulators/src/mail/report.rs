use serde_json::{Value, json};

use super::message::Mail;

const SIMULATOR: &str = "simulator.amazonses.com";

/// Returns the detail-type and the detail of each event that a mail causes. The form is SES's:
/// <https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-examples.html>.
pub(super) fn reports(mail: &Mail) -> Vec<(&'static str, Value)> {
    let Some(set) = &mail.configuration_set else { return Vec::new() };
    let mut tags: serde_json::Map<String, Value> =
        mail.tags.iter().map(|(name, value)| (name.clone(), json!([value]))).collect();
    tags.insert("ses:configuration-set".to_owned(), json!([set]));
    let about = json!({
        "timestamp": mail.at, "messageId": mail.message_id, "source": mail.from, "destination": mail.to, "tags": tags,
    });
    let report = |to: &String| {
        let (local, domain) = to.rsplit_once('@')?;
        let mailbox = local.split('+').next().unwrap_or_default();
        match mailbox {
            _ if !domain.eq_ignore_ascii_case(SIMULATOR) => None,
            "bounce" => Some((
                "Email Bounced",
                json!({
                    "eventType": "Bounce",
                    "bounce": {
                        "feedbackId": mail.message_id, "bounceType": "Permanent", "bounceSubType": "General",
                        "bouncedRecipients": [{
                            "emailAddress": to, "action": "failed", "status": "5.1.1",
                            "diagnosticCode": "smtp; 550 5.1.1 user unknown",
                        }],
                        "timestamp": mail.at,
                    },
                    "mail": about,
                }),
            )),
            "complaint" => Some((
                "Email Complaint Received",
                json!({
                    "eventType": "Complaint",
                    "complaint": {
                        "feedbackId": mail.message_id, "complaintSubType": null, "complaintFeedbackType": "abuse",
                        "complainedRecipients": [{"emailAddress": to}],
                        "timestamp": mail.at,
                    },
                    "mail": about,
                }),
            )),
            _ => None,
        }
    };
    mail.to.iter().filter_map(report).collect()
}
